// Made by .ci/unify.
// clang-format off
#include "Runtime/CompletionTests.cpp"
#include "Runtime/HazardTrackerTests.cpp"
#include "Runtime/ShapeTests.cpp"
