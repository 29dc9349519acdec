// What FlashDecode makes of numbers that are none, of huge ones, and of rows that have nothing to see. Vectors that no
// row sees are NaN or infinite in all cases of this and the other suites.
#include <limits>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Case smallCase(std::string name) {
  return {.name = std::move(name), .cache = DType::f16, .headDim = 32, .valueHeadDim = 32, .kvHeads = 2};
}

// Key 0 of 20 is seen by the first row alone, key 19 by the last alone, key 10 by all.
Case someRowsSee(uint64_t key, uint32_t splits, uint64_t rows = 4) {
  Case attend = smallCase(fmt::format("key {} in {} splits, {} rows", key, splits, rows));
  attend.headDim = attend.valueHeadDim = splits == 1 ? 32 : 64;
  attend.rows = rows;
  attend.sequences = {{0, 20}};
  attend.options.window = static_cast<uint32_t>(21 - rows);
  attend.options.splits = splits;
  attend.givesLogSumExp = true;
  return attend;
}

}  // namespace

TEST(FlashDecodeSpecial, NaNReachesTheRowsThatSeeIt) {
  std::vector<Case> cases;
  for (uint64_t key : {0, 10, 19}) {
    for (uint32_t splits : {1u, 3u}) {
      for (float number : {kNaN, kInfinity, -kInfinity}) {
        // An infinite key may give scores of either sign; with all its elements it gives NaN.
        Case attend = someRowsSee(key, splits);
        attend.name += fmt::format(" is {}", number);
        attend.specials = {{.isKey = true, .kvHead = 1, .key = key, .number = number}};
        cases.push_back(attend);
        attend = someRowsSee(key, splits);
        attend.name += fmt::format(" has {} in its value", number);
        attend.specials = {{.isKey = false, .kvHead = 0, .key = key, .element = 5 + key, .number = number}};
        cases.push_back(attend);
      }
    }
  }
  runOnEveryDevice(cases);
}

// Kernels for several rows are others than for one, and of nine the last is in a pass of its own.
TEST(FlashDecodeSpecial, InfiniteValuesReachTheRowsThatSeeThemHoweverManyRowsThereAre) {
  std::vector<Case> cases;
  for (uint64_t rows : {1, 2, 3, 9}) {
    for (uint64_t key : {0, 18, 19}) {
      Case attend = someRowsSee(key, 2, rows);
      attend.specials = {{.isKey = false, .kvHead = 0, .key = key, .element = 5, .number = kInfinity}};
      cases.push_back(attend);
    }
  }
  runOnEveryDevice(cases);
}

TEST(FlashDecodeSpecial, NaNScalesReachTheRowsThatSeeThem) {
  std::vector<Case> cases;
  for (uint64_t key : {0, 10, 19}) {
    for (bool isKey : {true, false}) {
      Case attend = someRowsSee(key, isKey ? 2 : 3);
      attend.name += isKey ? ", scale of the key" : ", scale of the value";
      attend.keyCodec = KVCodec{.bits = 4};
      attend.valueCodec = KVCodec{.bits = 3};
      attend.hasValueMeans = true;
      attend.specials = {{.isKey = isKey, .kvHead = 1, .key = key, .number = kNaN}};
      cases.push_back(attend);
    }
  }
  runOnEveryDevice(cases);
}

// Rounding of scores in f32 limits what can be asked: a score of 30000 is a multiple of 1/512. What is allowed goes by
// the size of scores.
TEST(FlashDecodeSpecial, HugeScoresDoNotOverflow) {
  std::vector<Case> cases;
  for (float size : {3e2f, 3e4f, 3e6f}) {
    for (uint32_t splits : {1u, 4u}) {
      Case attend = smallCase(fmt::format("queries up to {} in {} splits", size, splits));
      attend.size = size;
      attend.rows = 2;
      attend.options.splits = splits;
      attend.givesLogSumExp = true;
      cases.push_back(attend);
      attend.name += ", with options";
      setFloats(attend.options);
      cases.push_back(attend);
    }
  }
  Case attend = smallCase("all scores alike");
  attend.size = 0;
  cases.push_back(attend);
  attend = smallCase("sinks that dwarf the scores, and the other way round");
  attend.group = 8;
  attend.hasSinks = true;
  attend.sinkSize = 1e4f;
  attend.givesLogSumExp = true;
  cases.push_back(attend);
  runOnEveryDevice(cases);
}

TEST(FlashDecodeSpecial, MasksMayBeAsLowAsNumbersGo) {
  std::vector<Case> cases;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Case attend = smallCase(fmt::format("holes of the lowest {}", name(dtype)));
    attend.rows = 3;
    attend.mask = {.dtype = dtype, .hasFiniteHoles = true};
    attend.sequences = {{0, 60}};
    cases.push_back(attend);
    attend.name += ", in splits";
    attend.options.splits = 7;
    cases.push_back(attend);
    if (dtype != DType::f16) {
      attend.name = fmt::format("rows that the lowest {} closes", name(dtype));
      attend.mask = {.dtype = dtype, .hasEmptyRows = true, .hasFiniteHoles = true};
      attend.givesLogSumExp = true;
      cases.push_back(attend);
    }
    attend.name = fmt::format("{} that is low for all keys", name(dtype));
    attend.mask = {.dtype = dtype, .hasHoles = false, .offset = dtype == DType::f16 ? -6e4f : -1e5f};
    cases.push_back(attend);
  }
  runOnEveryDevice(cases);
}

// -inf in a mask takes a key away: its value may be anything.
TEST(FlashDecodeSpecial, ValuesWithoutWeightMayBeAnything) {
  std::vector<Case> cases;
  for (uint64_t headDim : {32, 64, 128}) {
    for (uint32_t splits : {1u, 2u}) {
      for (bool isQuantized : {false, true}) {
        Case attend = smallCase(fmt::format("{}, {} splits{}", headDim, splits, isQuantized ? ", codes" : ""));
        attend.headDim = attend.valueHeadDim = headDim;
        attend.rows = splits;
        attend.sequences = {{0, 70}};
        attend.options.splits = splits;
        attend.mask = {.dtype = DType::f16, .hasEmptyRows = splits == 2};
        attend.givesLogSumExp = true;
        if (isQuantized) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 5};
        cases.push_back(attend);
      }
    }
  }
  runOnEveryDevice(cases);
}

}  // namespace mnk::test
