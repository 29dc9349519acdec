// Made by .ci/unify.
// clang-format off
#include "Ops/FlashDecode/FlashDecodeOptionCases.cpp"
#include "Ops/FlashDecode/FlashDecodeReference.cpp"
