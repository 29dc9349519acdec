// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/KVCacheWrite/KVCacheWrite.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.cpp"
#include "Ops/KVCacheWrite/RepeatedWrite.cpp"
#pragma clang attribute pop
