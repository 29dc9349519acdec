// Made by .ci/unify.
// clang-format off
#include "Ops/RotaryAppend/RotaryAppendPlanTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRuleTests.cpp"
