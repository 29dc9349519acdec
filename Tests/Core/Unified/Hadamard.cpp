// Made by .ci/unify.
// clang-format off
#include "Ops/Hadamard/HadamardRuleTests.cpp"
#include "Ops/Hadamard/HadamardTests.cpp"
#include "Ops/FlashDecode/FlashPrefillTests.cpp"
#include "Runtime/RecordedStepTests.cpp"
