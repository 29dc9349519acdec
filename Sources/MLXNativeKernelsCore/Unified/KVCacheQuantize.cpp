// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/KVCacheQuantize/KVCacheQuantize.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.cpp"
#include "Ops/KVCacheQuantize/RepeatedQuantize.cpp"
#pragma clang attribute pop
