// FlashDecode on every device against attention in double: lengths, splits, rings and windows.
#include <limits>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"

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
  for (const float size : {1e-17f, 1e-9f, 6e4f, 1e6f, 1e30f}) {
    for (const uint64_t rows : {1, 5, 8, 16}) {
      for (const bool isCoded : {false, true}) {
        FlashDecodeCase attend{.name = fmt::format("{} rows of {} over {}", rows, size, isCoded ? "codes" : "f16"),
                               .cache = DType::f16,
                               .group = 1,
                               .rows = rows,
                               .sequences = {{0, 40}},
                               .size = size,
                               .options = {.scale = 1 / size, .kernel = AttentionOptions::Kernel::automatic}};
        if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
        cases.push_back(attend);
      }
    }
  }
  runOnEveryDevice(cases);
}

// The matrix kernel computes with halves: each row is brought into their range by itself.
TEST(FlashDecodeRange, MatricesTakeRowsOfMixedMagnitudes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  std::vector<FlashDecodeCase> cases;
  for (const DType queries : {DType::f32, DType::bf16}) {
    for (const float size : {1e-17f, 1e-6f, 7e4f, 1e6f, 1e30f}) {
      for (const uint32_t bits : {0u, 4u, 8u}) {
        for (const uint64_t rows : {1, 2}) {
          // Scores of the rows of this size are those of queries of size 1.
          FlashDecodeCase attend{
              .name = fmt::format("{} tokens of {} and others over {} bits by {}", rows, size, bits, name(queries)),
              .cache = DType::f16,
              .headDim = bits == 8 ? 128u : 64u,
              .valueHeadDim = bits == 8 ? 128u : 64u,
              .queries = queries,
              .group = 11,
              .rows = rows,
              .sequences = {{0, 40}},
              .sizes = {size, 1, kNaN, size, 0, kInfinity, size},
              .options = {.scale = 1 / size, .kernel = AttentionOptions::Kernel::matrix}};
          if (bits != 0) attend.keyCodec = attend.valueCodec = KVCodec{.bits = bits};
          cases.push_back(attend);
        }
      }
    }
  }
  runOnEveryDevice(cases);
}

}  // namespace mnk::test
