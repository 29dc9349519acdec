// Made by .ci/unify.
// clang-format off
#include "Ops/Hadamard/Hadamard.cpp"
#include "Ops/Hadamard/HadamardRules.cpp"
