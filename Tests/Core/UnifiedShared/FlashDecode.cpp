// Made by .ci/unify.
// clang-format off
#include "Ops/FlashDecode/AttentionHistory.cpp"
#include "Ops/FlashDecode/FlashDecodeCase.cpp"
#include "Ops/FlashDecode/FlashDecodeCases.cpp"
#include "Ops/FlashDecode/FlashDecodeInputs.cpp"
#include "Ops/FlashDecode/FlashDecodeRun.cpp"
#include "Ops/FlashDecode/TokenAttention.cpp"
