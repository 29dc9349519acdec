// Made by .ci/unify.
// clang-format off
#include "Ops/MergePartials/MergePartialsRuleTests.cpp"
#include "Ops/MergePartials/MergePartialsTests.cpp"
#include "Runtime/DispatchRulesTests.cpp"
