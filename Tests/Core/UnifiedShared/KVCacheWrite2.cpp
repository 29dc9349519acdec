// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheWrite/KVCacheWriteSourceCases.cpp"
