// Made by .ci/unify.
// clang-format off
#include "SoftMetal/LibraryTests.cpp"
