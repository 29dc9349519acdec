// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/MultiRoPE/RotaryRules.cpp"
#pragma clang attribute pop
