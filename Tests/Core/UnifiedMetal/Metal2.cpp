// Made by .ci/unify.
// clang-format off
#include "Metal/MetalSubmissionTests.cpp"
