// Made by .ci/unify.
// clang-format off
#include "Runtime/DispatchRulesTests.cpp"
#include "Runtime/RegionSetTests.cpp"
#include "Runtime/TensorTests.cpp"
