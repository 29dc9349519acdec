// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/Common/CacheAddressRules.cpp"
#include "Ops/Common/CacheAddressing.cpp"
#include "Ops/Common/HeadsMemory.cpp"
#include "Ops/Common/HeadsView.cpp"
#include "Ops/Common/KVCacheView.cpp"
#include "Ops/Common/KVCodec.cpp"
#include "Ops/Common/Overlap.cpp"
#include "Ops/Common/QuantizedCacheSize.cpp"
#include "Ops/Common/QuantizedKVCacheView.cpp"
#include "Ops/Common/VectorLanes.cpp"
#pragma clang attribute pop
