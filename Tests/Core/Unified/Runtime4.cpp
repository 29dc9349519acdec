// Made by .ci/unify.
// clang-format off
#include "Runtime/FailedMemoryTests.cpp"
#include "Runtime/ThreadgroupShapeTests.cpp"
