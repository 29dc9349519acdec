// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCases.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.cpp"
#include "Ops/FlashDecode/FlashDecodeReference.cpp"
