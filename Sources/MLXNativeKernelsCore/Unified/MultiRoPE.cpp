// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/MultiRoPE/MultiRoPE.cpp"
#include "Ops/MultiRoPE/MultiRoPEOperands.cpp"
#include "Ops/MultiRoPE/MultiRoPERules.cpp"
#include "Ops/MultiRoPE/RepeatedRotation.cpp"
#include "Ops/MultiRoPE/RotaryFrequencies.cpp"
#pragma clang attribute pop
