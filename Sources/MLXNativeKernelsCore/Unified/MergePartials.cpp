// Made by .ci/unify.
// clang-format off
#include "Ops/MergePartials/MergePartials.cpp"
#include "Ops/MergePartials/MergePartialsRules.cpp"
