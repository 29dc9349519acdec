// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Ops/Common/CacheAddressing.cpp"
#include "Ops/Common/HeadsMemory.cpp"
#include "Ops/Common/RepeatedOps.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/Common/KVCodec.cpp"
#include "Ops/Common/QuantizedKVCacheRules.cpp"
#include "Ops/Hadamard/Hadamard.cpp"
#include "Ops/KVCacheDequantize/KVCacheDequantize.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.cpp"
#include "Ops/KVCacheWrite/KVCacheWrite.cpp"
#include "Ops/MultiRoPE/MultiRoPE.cpp"
#include "Ops/MultiRoPE/MultiRoPERules.cpp"
#include "Ops/RotaryAppend/RotaryAppend.cpp"
#pragma clang attribute pop
