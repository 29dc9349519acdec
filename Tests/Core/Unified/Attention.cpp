// Files that SwiftPM compiles together, because most compile time goes to headers.
#include "Ops/FlashDecode/FlashDecodeKernelTests.cpp"
#include "Ops/FlashDecode/FlashDecodeLayoutTests.cpp"
#include "Ops/FlashDecode/FlashDecodePlanTests.cpp"
#include "Ops/FlashDecode/FlashDecodeRuleTests.cpp"
#include "Ops/FlashDecode/FlashDecodeTests.cpp"
#include "Ops/FlashDecode/MeasuredTuningTests.cpp"
#include "Ops/MergePartials/MergePartialsRuleTests.cpp"
#include "Ops/MergePartials/MergePartialsTests.cpp"
