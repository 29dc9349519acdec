// Made by .ci/unify.
// clang-format off
#include "Ops/MultiRoPE/MultiRoPE.cpp"
#include "Ops/MultiRoPE/MultiRoPEOperands.cpp"
#include "Ops/MultiRoPE/MultiRoPERules.cpp"
#include "Ops/MultiRoPE/RotaryFrequencies.cpp"
