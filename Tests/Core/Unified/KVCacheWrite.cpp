// Made by .ci/unify.
// clang-format off
#include "Ops/KVCacheWrite/KVCacheWriteCoverageTests.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteOperandTests.cpp"
#include "Ops/KVCacheWrite/KVCacheWritePlanTests.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteRuleTests.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteTests.cpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeStabilityTests.cpp"
