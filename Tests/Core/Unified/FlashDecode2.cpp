// Made by .ci/unify.
// clang-format off
#include "Ops/FlashDecode/FlashDecodeRuleTests.cpp"
