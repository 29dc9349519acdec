// FlashDecode on every device against attention in double: lengths, splits, rings and windows.
#include "Cases/FlashDecodeTrial.hpp"
#include "Support/Check.hpp"

namespace mnk::test {

TEST(FlashDecodeRange, AttendsToEveryLengthInAnyNumberOfSplits) {
  runOnEveryDevice(lengthCases());
}

TEST(FlashDecodeRange, AttendsToWhatRingsHoldAndWindowsShow) {
  runOnEveryDevice(ringCases());
}

}  // namespace mnk::test
