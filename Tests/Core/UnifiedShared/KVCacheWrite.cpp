// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheWrite/KVCacheWriteCase.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteCases.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRun.cpp"
