// Made by .ci/unify.
// clang-format off
#include "Runtime/RecordedStepReplayTests.cpp"
