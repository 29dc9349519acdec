// Made by .ci/unify.
// clang-format off
#include "Ops/FlashDecode/FlashDecodeCacheRuleTests.cpp"
#include "Ops/FlashDecode/FlashDecodeGridTests.cpp"
#include "Ops/FlashDecode/FlashDecodeInKernelMergeTests.cpp"
#include "Ops/FlashDecode/FlashDecodeMatrixTests.cpp"
#include "Ops/FlashDecode/FlashDecodeOptionsTests.cpp"
#include "Ops/FlashDecode/FlashDecodePlanTests.cpp"
#include "Ops/FlashDecode/FlashDecodePresetTests.cpp"
#include "Ops/FlashDecode/FlashDecodeQuantizedTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRangeTests.cpp"
#include "Ops/FlashDecode/FlashDecodeSpecialTests.cpp"
#include "Ops/FlashDecode/FlashDecodeTests.cpp"
#include "Ops/FlashDecode/MeasuredTuningTests.cpp"
