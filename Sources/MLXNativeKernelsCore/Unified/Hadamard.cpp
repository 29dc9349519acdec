// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/Hadamard/Hadamard.cpp"
#include "Ops/Hadamard/HadamardRules.cpp"
#pragma clang attribute pop
