// Made by .ci/unify.
// clang-format off
#include "Ops/Common/HeadsMemory.cpp"
#include "Ops/Common/QuantizedKVCacheRules.cpp"
