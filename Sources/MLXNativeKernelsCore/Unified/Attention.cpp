// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Ops/FlashDecode/AttentionShape.cpp"
#include "Ops/FlashDecode/FlashDecodeLayout.cpp"
#include "Ops/FlashDecode/RepeatedAttention.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/FlashDecode/AttentionDispatch.cpp"
#include "Ops/FlashDecode/AttentionResultRules.cpp"
#include "Ops/FlashDecode/FlashDecode.cpp"
#include "Ops/FlashDecode/FlashDecodeQueryRules.cpp"
#include "Ops/FlashDecode/FlashDecodeRules.cpp"
#include "Ops/FlashDecode/FlashDecodeTuner.cpp"
#include "Ops/FlashDecode/FlashDecodeTuning.cpp"
#include "Ops/FlashDecode/MeasuredTuning.cpp"
#include "Ops/MergePartials/MergePartials.cpp"
#include "Ops/MergePartials/MergePartialsRules.cpp"
#pragma clang attribute pop
