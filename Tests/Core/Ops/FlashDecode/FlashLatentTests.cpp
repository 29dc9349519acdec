// FlashDecode over latent caches, whose values are a part of keys: against attention in double on every device, and
// what the plan says of it.
#include <array>
#include <cmath>
#include <limits>

#include "PrefillFixture.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr uint64_t kLatent = 512, kRest = 64;
const float kScale = 1 / std::sqrt(192.0f);

// The newest `rows` of `length` tokens, of this many heads over one head of the cache, f16 throughout.
Case latentCase(std::string name, uint64_t heads, uint64_t length, uint64_t rows = 1) {
  return {.name = std::move(name),
          .cache = DType::f16,
          .headDim = kRest,
          .valueHeadDim = kLatent,
          .isLatent = true,
          .kvHeads = 1,
          .queries = DType::f16,
          .group = heads,
          .rows = rows,
          .sequences = {{0, length}},
          .into = DType::f16,
          .options = {.scale = kScale}};
}

void setStorage(Case& attend, uint64_t number) {
  const uint64_t drawn = number / 4;
  attend.cache = kPrefillTypes[drawn % 3];
  if (number % 4 == 0) attend.isOneTensor = true;
  if (number % 4 < 2) return;
  if (drawn % 4 == 3) {
    attend.keyCodec = KVCodec{KVCodec::Name::mlx1, 4};
    attend.valueCodec = KVCodec{KVCodec::Name::mlx1, std::array{4u, 5u, 6u, 8u}[drawn / 4 % 4], 1.5f};
    return;
  }
  setTurbo(attend, drawn);
}

// Any options, over any storage.
Case anyCase(uint64_t number, Seeded& random) {
  const uint64_t heads = std::array{1, 2, 3, 8, 16, 20}[random.below(6)];
  const uint64_t rows = 1 + random.below(random.below(2) == 0 ? 1 : 9);
  Case attend = latentCase("", heads, rows + random.below(50), rows);
  setStorage(attend, random.next() >> 8);
  drawOptions(attend, random);
  attend.name =
      fmt::format("case {}: {} rows of {} heads over {}", number, rows, attend.heads(), prefillStorageText(attend));
  return attend;
}

std::vector<Case> anyCases() {
  return drawnCases(100, &anyCase);
}

}  // namespace

// Fewer keys than a tile has, as many, one more, and several splits.
TEST(FlashLatent, AttendsWithAnyNumberOfHeads) {
  std::vector<Case> cases;
  for (const uint64_t heads : {1, 2, 8, 16, 128}) {
    for (const uint64_t length : {1, 7, 16, 17, 70}) {
      const uint64_t number = cases.size();
      Case attend = latentCase(fmt::format("{} heads over {} keys", heads, length), heads, length);
      attend.cache = attend.queries = attend.into = kPrefillTypes[number % 3];
      attend.isOneTensor = number % 2 == 1;
      if (length == 70) attend.options.splits = 3;
      cases.push_back(attend);
      if (number % 5 != 4) continue;
      attend.isOneTensor = false;
      attend.keyCodec = KVCodec{.bits = 8};
      attend.valueCodec = KVCodec{.bits = 4};
      cases.push_back(attend);
    }
  }
  expectAllAttended(cases);
}

TEST(FlashLatent, AttendsWithAnyOptionsOverAnyStorage) {
  expectAllAttended(anyCases());
}

// Codes of 8 bits leave room for fewer rows; and a pipeline may allow fewer threads than were planned.
TEST(FlashLatent, AttendsInTurnsWithFewerSimdgroups) {
  const Case dense = latentCase("dense", 20, 25, 2);
  Case quantized = latentCase("codes", 20, 25, 2);
  quantized.keyCodec = quantized.valueCodec = KVCodec{.bits = 8};
  expectAttendedInTurns({dense, quantized}, {4, 6});
}

// With a window of 6, the rows of positions 15 to 17 see key 15. What is wrong with the latent part is wrong with a
// key.
TEST(FlashLatent, NaNReachesTheRowsThatSeeItAlone) {
  std::vector<Case> cases;
  for (const bool isKey : {true, false}) {
    for (const uint64_t storage : {0, 1, 2, 3}) {
      for (const uint64_t heads : {1, 3}) {
        Case attend = latentCase(fmt::format("{} of storage {}", isKey ? "key" : "latent part", storage), heads, 20, 8);
        attend.cache = kPrefillTypes[cases.size() % 3];
        attend.into = DType::f32;
        attend.options.window = 6;
        attend.givesLogSumExp = true;
        attend.isOneTensor = storage == 1;
        if (storage >= 2) attend.valueCodec = KVCodec{.bits = 4};
        if (storage == 2) attend.keyCodec = attend.valueCodec;
        attend.specials = {{.isKey = isKey, .kvHead = 0, .key = 15, .number = std::numeric_limits<float>::quiet_NaN()}};
        if (storage < 2 || (storage == 3 && isKey)) attend.specials[0].element = 7;
        cases.push_back(attend);
      }
    }
  }
  expectAllAttended(cases);
}

TEST(FlashLatent, OneTensorTakesTheKernelAndTheBytesOfTwo) {
  const Case two = latentCase("", 16, 40);
  Case one = two;
  one.isOneTensor = true;
  for (const DeviceProfile& profile : {DeviceProfile{}, kPrefillGPU}) {
    const Plan ofTwo = REQUIRE(plan(planOp(two), profile)), ofOne = REQUIRE(plan(planOp(one), profile));
    EXPECT_EQ(ofOne.dispatches.at(0).countedBytesRead(), ofTwo.dispatches.at(0).countedBytesRead());
    EXPECT_EQ(ofOne.dispatches.at(0).kernel.function, ofTwo.dispatches.at(0).kernel.function);
  }
}

TEST(FlashLatent, ReadsTheCacheOnceForEachTileOfRows) {
  struct Golden {
    DeviceProfile profile;
    uint64_t heads, rows, length, tiles;
    uint32_t simdgroups, splits;
  };
  const auto& [apple, other] = std::pair(kPrefillGPU, kOtherGPU);
  for (const auto& [profile, heads, rows, length, tiles, simdgroups, splits] : {Golden{apple, 128, 1, 4096, 6, 12, 2},
                                                                                {apple, 16, 1, 4096, 1, 8, 10},
                                                                                {apple, 16, 1, 40, 1, 8, 1},
                                                                                {other, 128, 1, 1024, 3, 12, 32},
                                                                                {other, 128, 1, 4096, 3, 12, 43},
                                                                                {other, 128, 4, 65536, 11, 12, 12}}) {
    const Context context(fmt::format("{} heads, {} rows over {} keys", heads, rows, length));
    const Plan planned = REQUIRE(plan(planOp(latentCase("", heads, length, rows)), profile));
    EXPECT_EQ(planned.dispatches.size(), splits > 1 ? 2u : 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kernel.function,
              profile.family.empty() ? "flashPrefill_latent_f16_2_16" : "flashPrefill_latent_f16_1_16");
    EXPECT_EQ(dispatch.grid.extent, (Size3{splits, 1, static_cast<uint32_t>(tiles)}));
    EXPECT_EQ(dispatch.grid.threadgroup, (Size3{32 * simdgroups, 1, 1}));
    EXPECT_EQ(dispatch.grid.minThreads, 128u);
    EXPECT(dispatch.threadgroupMemory.at(0).bytes <= 32u * 1024);
    if (rows == 1) EXPECT_EQ(dispatch.countedBytesRead(), (tiles * length + heads) * 576 * 2);
  }
}

TEST(FlashLatent, KernelIsChosenByRowsAndDevice) {
  const auto kernelOf = [](const Case& attend, const DeviceProfile& profile) {
    return REQUIRE(plan(planOp(attend), profile)).dispatches.at(0).kernel.function;
  };
  Case attend = latentCase("", 2, 40);
  EXPECT_EQ(kernelOf(attend, kPrefillGPU), "flashPrefill_latent_f16_1_16");
  EXPECT_EQ(kernelOf(attend, {}), "flashDecodeVector_latent_64_512_1");
  EXPECT_EQ(kernelOf(attend, {.family = "host"}), "flashDecodeVector_latent_64_512_4_fewLanes");
  attend.cache = DType::bf16;
  EXPECT_EQ(kernelOf(attend, kPrefillGPU), "flashPrefill_latent_f32_1_8");
  attend.group = 1;
  EXPECT_EQ(kernelOf(attend, kPrefillGPU), "flashDecodeVector_latent_64_512_1");
  EXPECT_EQ(kernelOf(attend, {.family = "host"}), "flashDecodeVector_latent_64_512_1_fewLanes");
  attend.rows = 2;
  EXPECT_EQ(kernelOf(attend, kPrefillGPU), "flashPrefill_latent_f32_1_8");
  attend.options.kernel = AttentionOptions::Kernel::vector;
  EXPECT_EQ(kernelOf(attend, kPrefillGPU), "flashDecodeVector_latent_64_512_1");
}

// Shorter parts would need kernels that pad them.
TEST(FlashLatent, OtherHeadDimsHaveNoKernel) {
  for (const bool isQuantized : {false, true}) {
    for (const uint64_t dim : {32, 64, 128, 256, 512}) {
      EXPECT_EQ(hasAttentionKernel(64, dim, isQuantized, true), dim == 512);
      EXPECT_EQ(hasAttentionKernel(dim, 512, isQuantized, true), dim == 64);
    }
  }
}

TEST(FlashLatent, CasesReachEveryKernelAndConstant) {
  ReachedKernels reached;
  for (const Case& attend : anyCases()) {
    const Context context(attend.name);
    for (const DeviceProfile& profile : {DeviceProfile{}, kPrefillGPU, kOtherGPU}) {
      reached.add(REQUIRE(plan(planOp(attend), profile)).dispatches.at(0));
    }
  }
  EXPECT_EQ(reached.functions,
            (std::set<std::string>{"flashDecodeVector_latent_64_512_1", "flashPrefill_latent_f16_1_16",
                                   "flashPrefill_latent_f16_2_16", "flashPrefill_latent_f32_1_8"}));
  // The device's, never asked for here, or of codecs that have no vectors of 64.
  reached.expectEveryConstantBut({kFlashDecodeHasRowMajorMatrices, kFlashDecodeIsPadded, kFlashDecodeSimdgroupsPerRow,
                                  kFlashDecodeMergesInKernel, kKVCodecIsUnrotated, kKVCodecIsAffine});
}

}  // namespace mnk::test
