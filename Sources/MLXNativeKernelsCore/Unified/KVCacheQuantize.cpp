// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheQuantize/KVCacheQuantize.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.cpp"
