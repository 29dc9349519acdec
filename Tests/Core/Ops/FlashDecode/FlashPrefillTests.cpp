// FlashDecode with many rows, which GPUs attend with in one dispatch: against attention in double on every device, and
// what the plan says of it.
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "PrefillFixture.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr uint64_t kHeadDims[] = {64, 80, 96, 128, 192, 256};

// A prompt after `before` positions: causal, f16 throughout.
Case promptCase(std::string name, uint64_t headDim, uint64_t rows, uint64_t before = 0) {
  return {.name = std::move(name),
          .cache = DType::f16,
          .headDim = headDim,
          .valueHeadDim = headDim,
          .kvHeads = 1,
          .queries = DType::f16,
          .group = 1,
          .rows = rows,
          .sequences = {{0, before + rows}},
          .into = DType::f16,
          .options = {}};
}

void setPrefillStorage(Case& attend, uint64_t number) {
  const bool isCoded = number % 2 == 1;
  const uint64_t drawn = number / 2;
  attend.cache = kPrefillTypes[drawn % 3];
  if (!isCoded) return;
  if (drawn % 4 == 3 && std::has_single_bit(attend.headDim)) {
    const uint32_t bits = attend.headDim == 256 ? std::array{4u, 5u, 6u, 8u}[drawn / 4 % 4] : 4u;
    attend.keyCodec = KVCodec{KVCodec::Name::mlx1, bits};
    attend.valueCodec = KVCodec{KVCodec::Name::mlx1, bits == 6 ? 4 : bits};
    return;
  }
  setTurbo(attend, drawn);
}

// Any options, over any storage.
Case anyPrompt(uint64_t number, Seeded& random) {
  const uint64_t rows = 9 + random.below(24), before = random.below(3) == 0 ? 0 : random.below(50);
  Case attend = promptCase("", kHeadDims[number % std::size(kHeadDims)], rows, before);
  attend.group = std::array{1, 1, 2, 3, 4, 5, 8}[random.below(7)];
  setPrefillStorage(attend, random.next() >> 8);
  drawOptions(attend, random);
  attend.name = fmt::format("case {}: {} rows of groups of {}, {} of {}", number, rows, attend.group, attend.headDim,
                            prefillStorageText(attend));
  return attend;
}

std::vector<Case> anyPrompts() {
  std::vector<Case> cases = drawnCases(120, &anyPrompt);
  // Variants of mlx1, which are too rare to be drawn.
  for (const uint32_t bits : {4u, 5u, 6u, 8u}) {
    const KVCodec codec{bits == 4 ? KVCodec::Name::mlx1Affine4 : KVCodec::Name::mlx1Unrotated, bits};
    for (const bool hasDenseKeys : {false, true}) {
      Case attend = promptCase(fmt::format("{}{}", hasDenseKeys ? "f16 and " : "", codec.text()), 256, 20, 2 * bits);
      if (!hasDenseKeys) attend.keyCodec = codec;
      attend.valueCodec = codec;
      attend.group = 2;
      attend.options.splits = bits % 3;
      cases.push_back(attend);
    }
  }
  return cases;
}

const Dispatch& onlyDispatch(const Plan& planned) {
  EXPECT_EQ(planned.dispatches.size(), 1u);
  return planned.dispatches.at(0);
}

}  // namespace

TEST(FlashPrefill, AttendsToAPrompt) {
  std::vector<Case> cases;
  for (uint64_t headDim : kHeadDims) {
    for (uint64_t rows : {9, 16, 33, 70}) {
      Case attend = promptCase(fmt::format("{} rows of {}", rows, headDim), headDim, rows, rows % 7);
      attend.cache = attend.queries = attend.into = kPrefillTypes[(rows + headDim / 16) % 3];
      cases.push_back(attend);
    }
  }
  expectAllAttended(cases);
}

// More rows than fit in threadgroup memory at once, before they attend and after; codes; simdgroups that share rows.
TEST(FlashPrefill, UsesThreadgroupMemoryInTurns) {
  Case dense = promptCase("dense", 128, 50), quantized = promptCase("codes", 256, 100, 3);
  quantized.kvHeads = 3;  // enough for threadgroups with more queries than fit at a time
  quantized.keyCodec = quantized.valueCodec = KVCodec{.bits = 3};
  expectAllAttended({dense, quantized});
}

TEST(FlashPrefill, AttendsWithAnyOptionsOverAnyStorage) {
  expectAllAttended(anyPrompts());
}

TEST(FlashPrefill, AttendsInTurnsWithFewerSimdgroups) {
  std::vector<Case> cases;
  for (uint64_t headDim : {96, 256}) {
    cases.push_back(promptCase(fmt::format("{}", headDim), headDim, 40, 5));
    cases.back().group = 2;
  }
  expectAttendedInTurns(cases, {2, 3});
}

// With a window of 12, the rows of positions 15 to 26 see key 15, and the last five see key 25.
TEST(FlashPrefill, NaNReachesTheRowsThatSeeItAlone) {
  std::vector<Case> cases;
  for (const float number : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const uint64_t key : {15, 25}) {
      for (const bool isKey : {true, false}) {
        for (const uint64_t headDim : {64, 192, 256}) {
          const bool isCoded = headDim == 256;
          if (isCoded && !std::isnan(number))
            continue;  // an infinite scale may give a score of -inf, which has no weight
          Case attend = promptCase(fmt::format("{} {} of {} is {}", isKey ? "key" : "value", key, headDim, number),
                                   headDim, 20, 10);
          attend.cache = kPrefillTypes[cases.size() % 3];
          attend.queries = kPrefillTypes[cases.size() / 3 % 3];
          attend.into = DType::f32;
          attend.options.window = 12;
          attend.givesLogSumExp = true;
          if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 4};
          attend.specials = {{.isKey = isKey, .kvHead = 0, .key = key, .number = number}};
          if (!isKey && !isCoded) attend.specials[0].element = 7;
          cases.push_back(attend);
        }
      }
    }
  }
  expectAllAttended(cases);
}

// Of 32 query heads over 8 heads of 128, in f16.
FlashDecode layerOf(uint64_t rows, uint64_t length) {
  Case attend = promptCase("", 128, rows, length - rows);
  attend.kvHeads = 8;
  attend.group = 4;
  attend.options.splits = 1;
  return planOp(attend);
}

uint64_t bytesRead(const Plan& planned) {
  uint64_t bytes = 0;
  for (const Dispatch& dispatch : planned.dispatches) bytes += dispatch.countedBytesRead();
  return bytes;
}

TEST(FlashPrefill, IsOneDispatchThatReadsTheCacheOnceForEachTileOfRows) {
  struct Golden {
    DeviceProfile profile;
    uint64_t rows, length, tiles, keys;
    uint32_t simdgroups;
  };
  // Keys that tiles see, all together.
  const auto& [apple, other] = std::pair(kPrefillGPU, kOtherGPU);
  for (const auto& [profile, rows, length, tiles, keys, simdgroups] : {Golden{apple, 512, 512, 22, 6056, 12},
                                                                       {apple, 9, 9, 1, 9, 5},
                                                                       {apple, 96, 4096, 5, 20296, 10},
                                                                       {other, 512, 512, 16, 4352, 8},
                                                                       {other, 512, 4096, 16, 61696, 8},
                                                                       {other, 2048, 2048, 47, 49612, 11},
                                                                       {other, 8192, 8192, 171, 705872, 12},
                                                                       {other, 9, 9, 1, 9, 3}}) {
    const Context context(fmt::format("{} rows over {} keys", rows, length));
    const FlashDecode op = layerOf(rows, length);
    const Plan planned = REQUIRE(plan(op, profile)), passes = REQUIRE(plan(op));
    const Dispatch& dispatch = onlyDispatch(planned);
    EXPECT_EQ(dispatch.kernel.function,
              profile.family.empty() ? "flashPrefill_f16_128_2_32" : "flashPrefill_f16_128_1_32");
    EXPECT_EQ(dispatch.grid.extent, (Size3{1, 8, static_cast<uint32_t>(tiles)}));
    EXPECT_EQ(dispatch.grid.threadgroup, (Size3{32 * simdgroups, 1, 1}));
    EXPECT_EQ(dispatch.countedBytesRead(), 8 * keys * 512 + rows * 32 * 256);
    EXPECT_EQ(planned.scratchBytes, 0u);
    EXPECT(dispatch.threadgroupMemory.at(0).bytes <= 32u * 1024);
    EXPECT_EQ(passes.dispatches.size(), (rows + 7) / 8);
    if (rows >= 512) EXPECT(2 * bytesRead(planned) <= bytesRead(passes));
  }
}

TEST(FlashPrefill, IsChosenByRowsHeadDimAndDevice) {
  const auto isChosen = [](const Case& attend, const DeviceProfile& profile) {
    return REQUIRE(plan(planOp(attend), profile)).dispatches.at(0).kernel.function.starts_with("flashPrefill_");
  };
  EXPECT(isChosen(promptCase("", 128, 9), kPrefillGPU));
  EXPECT(!isChosen(promptCase("", 128, 8), kPrefillGPU));
  for (uint64_t headDim : {32, 72, 112, 512}) EXPECT(!isChosen(promptCase("", headDim, 100), kPrefillGPU));
  EXPECT(!isChosen(promptCase("", 128, 100), {}));
  EXPECT(!isChosen(promptCase("", 128, 100), {.family = "apple9"}));
  EXPECT(!isChosen(promptCase("", 128, 100), {.family = "host", .matrixLayout = MatrixLayout::interleaved}));
  Case attend = promptCase("", 128, 100);
  attend.options.kernel = AttentionOptions::Kernel::vector;
  EXPECT(!isChosen(attend, kPrefillGPU));
  attend.options.kernel = AttentionOptions::Kernel::matrix;
  EXPECT(!isChosen(attend, kPrefillGPU));
}

TEST(FlashPrefill, SimdgroupsThatShareRowsStayTogether) {
  for (const uint64_t headDim : kHeadDims) {
    const Plan planned = REQUIRE(plan(planOp(promptCase("", headDim, 100)), kPrefillGPU));
    EXPECT_EQ(onlyDispatch(planned).grid.minThreads, headDim > 128 ? 64u : 32u);
  }
}

TEST(FlashPrefill, CasesReachEveryKernelAndConstant) {
  ReachedKernels reached;
  for (const Case& attend : anyPrompts()) {
    for (const DeviceProfile& profile : {kPrefillGPU, kOtherGPU}) {
      const Context context(attend.name);
      const Plan planned = REQUIRE(plan(planOp(attend), profile));
      reached.add(planned.dispatches.at(0));
      EXPECT(planned.dispatches.at(0).kernel.function.starts_with("flashPrefill_"));
      EXPECT(planned.dispatches.size() <= 2);
    }
  }
#define ROW(type, dim, blocks, keys) \
  EXPECT(reached.functions.contains("flashPrefill_" #type "_" #dim "_" #blocks "_" #keys));
  MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
  // The device's; what only the vector kernel has; what prefill never does, and always; what FlashLatent has.
  reached.expectEveryConstantBut({kFlashDecodeHasRowMajorMatrices, kFlashDecodeIsPadded, kFlashDecodeMergesInKernel,
                                  kFlashDecodeHasTokens, kFlashDecodeIsOneTensor});
}

}  // namespace mnk::test
