// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Ops/FlashDecode/AttentionHistory.cpp"
#include "Ops/FlashDecode/FlashDecodeCase.cpp"
#include "Ops/FlashDecode/FlashDecodeCases.cpp"
#include "Ops/FlashDecode/FlashDecodeInputs.cpp"
#include "Ops/FlashDecode/FlashDecodeReference.cpp"
#include "Ops/FlashDecode/FlashDecodeRun.cpp"
