// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/FlashDecode/AttentionDispatch.cpp"
#include "Ops/FlashDecode/AttentionResultRules.cpp"
#include "Ops/FlashDecode/FlashDecode.cpp"
#include "Ops/FlashDecode/FlashDecodeLayout.cpp"
#include "Ops/FlashDecode/FlashDecodeQueryRules.cpp"
#include "Ops/FlashDecode/FlashDecodeRules.cpp"
#include "Ops/FlashDecode/FlashDecodeShape.cpp"
#include "Ops/FlashDecode/FlashDecodeTuner.cpp"
#include "Ops/FlashDecode/FlashDecodeTuning.cpp"
#include "Ops/FlashDecode/MeasuredTuning.cpp"
#pragma clang attribute pop
#include "Ops/FlashDecode/RepeatedAttention.cpp"
