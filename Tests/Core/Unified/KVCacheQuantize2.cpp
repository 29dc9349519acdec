// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheQuantize/KVCacheQuantizeStabilityTests.cpp"
