// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/Common/HeadsMemory.cpp"
#include "Ops/Common/QuantizedKVCacheRules.cpp"
#pragma clang attribute pop
