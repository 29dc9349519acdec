// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCases.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRun.cpp"
