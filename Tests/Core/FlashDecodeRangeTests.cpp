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

// Whatever their magnitude, if the scale makes up for it.
TEST(FlashDecodeRange, AttendsByF32QueriesOfAnyMagnitude) {
  std::vector<FlashDecodeCase> cases;
  for (const float size : {1e-30f, 1e-9f, 6e4f, 1e6f, 1e30f}) {
    for (const uint64_t rows : {1, 5, 8, 16}) {
      for (const bool isCoded : {false, true}) {
        FlashDecodeCase attend{.name = fmt::format("{} rows of {} over {}", rows, size, isCoded ? "codes" : "f16"),
                               .cache = DType::f16,
                               .group = 1,
                               .rows = rows,
                               .sequences = {{0, 40}},
                               .size = size,
                               .options = {.scale = 1 / size, .kernel = FlashDecodeKernel::automatic}};
        if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
        cases.push_back(attend);
      }
    }
  }
  runOnEveryDevice(cases);
}

}  // namespace mnk::test
