// Made by .ci/unify.
// clang-format off
#include "Ops/MultiRoPE/RotaryRuleTests.cpp"
