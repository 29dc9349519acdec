// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheWrite/KVCacheWrite.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.cpp"
