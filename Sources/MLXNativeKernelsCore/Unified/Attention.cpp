// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Ops/FlashDecode/AttentionShape.cpp"
#include "Ops/FlashDecode/FlashDecodeLayout.cpp"

// What follows neither iterates over data nor encodes steps: it is optimized for size, which compiles faster.
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/FlashDecode/FlashDecode.cpp"
#include "Ops/FlashDecode/FlashDecodeRules.cpp"
#include "Ops/FlashDecode/FlashDecodeTuner.cpp"
#include "Ops/FlashDecode/FlashDecodeTuning.cpp"
#include "Ops/MergePartials/MergePartials.cpp"
#pragma clang attribute pop
