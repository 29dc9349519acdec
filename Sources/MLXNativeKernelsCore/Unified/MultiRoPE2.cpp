// Made by .ci/unify.
// clang-format off
#include "Ops/MultiRoPE/RotaryRules.cpp"
