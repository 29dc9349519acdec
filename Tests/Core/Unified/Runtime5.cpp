// Made by .ci/unify.
// clang-format off
#include "Runtime/MemoryInFlightTests.cpp"
