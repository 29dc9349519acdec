// Made by .ci/unify.
// clang-format off
#include "SoftMetal/RuntimeTests.cpp"
