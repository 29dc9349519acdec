// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/MergePartials/MergePartials.cpp"
#include "Ops/MergePartials/MergePartialsRules.cpp"
#pragma clang attribute pop
