// FlashDecode over latent caches, whose values are a part of keys: against attention in double on every device, and
// what the plan says of it.
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Runtime/ThreadgroupShape.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr uint64_t kLatent = 512, kRest = 64;
const float kScale = 1 / std::sqrt(192.0f);
const DeviceProfile kGPU{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};

void run(const std::vector<Case>& cases) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (const Case& attend : cases) all.push_back(prepared(attend, random));
  runCases(all, &FlashDecodeRun::expectAttended);
}

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
  attend.cache = kFloats[drawn % 3];
  if (number % 4 == 0) attend.isOneTensor = true;
  if (number % 4 < 2) return;
  if (drawn % 4 == 3) {
    attend.keyCodec = KVCodec{KVCodecName::mlx1, 4};
    attend.valueCodec = KVCodec{KVCodecName::mlx1, std::array{4u, 5u, 6u, 8u}[drawn / 4 % 4], 1.5f};
    return;
  }
  attend.keyCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn % 7)};
  attend.valueCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn / 7 % 7)};
  attend.hasKeyMeans = drawn % 3 == 0;
  attend.hasValueMeans = drawn % 5 < 2;
  attend.hasChannelScales = drawn % 4 == 1;
  if (drawn % 11 < 3) {
    attend.keyCodec.reset();
    attend.hasKeyMeans = attend.hasChannelScales = false;
  } else if (drawn % 11 < 5) {
    attend.valueCodec.reset();
    attend.hasValueMeans = false;
  }
}

std::string storageText(const Case& attend) {
  const auto text = [&](const std::optional<KVCodec>& codec) {
    return codec ? codec->text() : std::string(name(attend.cache));
  };
  return fmt::format("{} and {}{}", text(attend.valueCodec), text(attend.keyCodec),
                     attend.isOneTensor ? " in one tensor" : "");
}

// Any options that go together, over any storage.
Case anyCase(uint64_t number, Seeded& random) {
  const auto isDrawn = [&](uint64_t of) { return random.below(of) == 0; };
  Case attend =
      latentCase("", std::array{1, 2, 3, 8, 16, 20}[random.below(6)], 0, 1 + random.below(isDrawn(2) ? 1 : 9));
  setStorage(attend, random.next() >> 8);
  attend.queries = kFloats[random.below(3)];
  attend.into = kFloats[random.below(3)];
  attend.kvHeads = 1 + random.below(2);
  attend.layout = isDrawn(2) ? KVLayout::headMajor : KVLayout::tokenMajor;
  attend.queryPlaces = static_cast<QueryPlaces>(random.below(4));
  const uint64_t length = attend.rows + random.below(50);
  attend.sequences = {{0, length}};
  const bool isRing = isDrawn(3);
  if (isRing) {
    attend.wrap = KVWrap::ring;
    attend.pinned = static_cast<uint32_t>(random.below(6));
    attend.capacity = attend.rows + attend.pinned + random.below(30);
    if (isDrawn(4)) attend.sequences[0].highest = length + random.below(6);
  } else if (isDrawn(3)) {
    attend.cacheSequences = 3;
    attend.sequences = {{2, length}, {0, isDrawn(2) ? 0 : attend.rows}, {1, attend.rows + random.below(9)}};
  }
  attend.options.isCausal = !isDrawn(5);
  if (isDrawn(3)) {
    attend.options.window = static_cast<uint32_t>(1 + random.below(isRing ? 8 : length));
    attend.options.windowSeesPinned = isDrawn(2);
  }
  if (isDrawn(4)) attend.options.softcap = 20;
  if (isDrawn(3)) {
    attend.mask = MaskCase{.dtype = kFloats[random.below(3)],
                           .rank = static_cast<uint32_t>(attend.sequences.size() > 1 ? 4 : 2 + random.below(3)),
                           .servesAllHeads = isDrawn(2),
                           .servesAllRows = isDrawn(3),
                           .hasEmptyRows = isDrawn(2)};
  }
  const bool isRagged = attend.sequences.size() > 1 && !attend.mask && !isDrawn(3);
  for (size_t s = 0; isRagged && s < attend.sequences.size(); ++s) {
    attend.sequences[s].rows = s == 0 ? attend.rows : 1 + random.below(attend.rows);
  }
  attend.hasSlopes = isDrawn(4);
  attend.givesPartials = isDrawn(5);
  attend.hasSinks = !attend.givesPartials && isDrawn(4);
  attend.givesLogSumExp = isDrawn(3);
  attend.options.splits = static_cast<uint32_t>(random.below(4));
  attend.cacheShift = isDrawn(5) ? (attend.isQuantized() && !attend.isMixed() ? 1 : byteSize(attend.cache)) : 0;
  attend.queryShift = isDrawn(5) ? byteSize(attend.queries) : 0;
  attend.intoShift = isDrawn(5) ? byteSize(attend.givesPartials ? DType::f32 : attend.into) : 0;
  attend.hasScratch = isDrawn(4);
  attend.name =
      fmt::format("case {}: {} rows of {} heads over {}", number, attend.rows, attend.heads(), storageText(attend));
  return attend;
}

std::vector<Case> anyCases() {
  constexpr uint64_t kCount = 100;
  Seeded random(7);
  std::vector<Case> cases;
  for (uint64_t number = 0; cases.size() < kCount; ++number) {
    Case attend = anyCase(number, random);
    if (plan(planOp(attend))) cases.push_back(std::move(attend));  // the others break a rule
  }
  return cases;
}

}  // namespace

// Fewer keys than a tile has, as many, one more, and several splits.
TEST(FlashLatent, AttendsWithAnyNumberOfHeads) {
  std::vector<Case> cases;
  for (const uint64_t heads : {1, 2, 8, 16, 128}) {
    for (const uint64_t length : {1, 7, 16, 17, 70}) {
      const uint64_t number = cases.size();
      Case attend = latentCase(fmt::format("{} heads over {} keys", heads, length), heads, length);
      attend.cache = attend.queries = attend.into = kFloats[number % 3];
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
  run(cases);
}

TEST(FlashLatent, AttendsWithAnyOptionsOverAnyStorage) {
  run(anyCases());
}

// Codes of 8 bits leave room for fewer rows; and a pipeline may allow fewer threads than were planned.
TEST(FlashLatent, AttendsInTurnsWithFewerSimdgroups) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (const bool isCoded : {false, true}) {
    Case attend = latentCase(isCoded ? "codes" : "dense", 20, 25, 2);
    if (isCoded) attend.keyCodec = attend.valueCodec = KVCodec{.bits = 8};
    all.push_back(prepared(attend, random));
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      for (const uint32_t simdgroups : {4, 6}) {
        const Context context(fmt::format("{} simdgroups", simdgroups));
        const FlashDecodeRun one(device, each, random);
        Plan planned = REQUIRE(mnk::plan(one.op().op, *device));
        Grid& grid = planned.dispatches.at(0).grid;
        grid = shrunkTo(32 * simdgroups, grid);
        REQUIRE(CommandEncoder::run(
            device, [&](CommandEncoder& encoder) { return encoder.encode(planned); }, "turns"));
        one.expectAttended();
      }
    }
  });
}

// With a window of 6, the rows of positions 15 to 17 see key 15. What is wrong with the latent part is wrong with a
// key.
TEST(FlashLatent, NaNReachesTheRowsThatSeeItAlone) {
  std::vector<Case> cases;
  for (const bool isKey : {true, false}) {
    for (const uint64_t storage : {0, 1, 2, 3}) {
      for (const uint64_t heads : {1, 3}) {
        Case attend = latentCase(fmt::format("{} of storage {}", isKey ? "key" : "latent part", storage), heads, 20, 8);
        attend.cache = kFloats[cases.size() % 3];
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
  run(cases);
}

TEST(FlashLatent, OneTensorTakesTheKernelAndTheBytesOfTwo) {
  const Case two = latentCase("", 16, 40);
  Case one = two;
  one.isOneTensor = true;
  for (const DeviceProfile& profile : {DeviceProfile{}, kGPU}) {
    const Plan ofTwo = REQUIRE(plan(planOp(two), profile)), ofOne = REQUIRE(plan(planOp(one), profile));
    EXPECT_EQ(ofOne.dispatches.at(0).countedBytesRead(), ofTwo.dispatches.at(0).countedBytesRead());
    EXPECT_EQ(ofOne.dispatches.at(0).kernel.function, ofTwo.dispatches.at(0).kernel.function);
  }
}

TEST(FlashLatent, ReadsTheCacheOnceForEachTileOfRows) {
  struct Golden {
    uint64_t heads, rows, length, tiles;
    uint32_t simdgroups, splits;
  };
  for (const auto& [heads, rows, length, tiles, simdgroups, splits] :
       {Golden{128, 1, 4096, 3, 12, 3}, {16, 1, 4096, 1, 4, 10}, {16, 1, 200, 1, 4, 1}, {128, 4, 4096, 11, 12, 1}}) {
    const Context context(fmt::format("{} heads, {} rows", heads, rows));
    const Plan planned = REQUIRE(plan(planOp(latentCase("", heads, length, rows)), kGPU));
    EXPECT_EQ(planned.dispatches.size(), splits > 1 ? 2u : 1u);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kernel.function, "flashPrefill_latent_f16");
    EXPECT_EQ(dispatch.grid.extent, (Size3{splits, 1, static_cast<uint32_t>(tiles)}));
    EXPECT_EQ(dispatch.grid.threadgroup, (Size3{32 * simdgroups, 1, 1}));
    EXPECT_EQ(dispatch.grid.fewestThreads, 128u);
    EXPECT(dispatch.threadgroupMemory.at(0).bytes <= 32u * 1024);
    if (rows == 1) EXPECT_EQ(dispatch.countedBytesRead(), (tiles * length + heads) * 576 * 2);
  }
}

TEST(FlashLatent, KernelIsChosenByRowsAndDevice) {
  const auto kernelOf = [](const Case& attend, const DeviceProfile& profile) {
    return REQUIRE(plan(planOp(attend), profile)).dispatches.at(0).kernel.function;
  };
  Case attend = latentCase("", 2, 40);
  EXPECT_EQ(kernelOf(attend, kGPU), "flashPrefill_latent_f16");
  EXPECT_EQ(kernelOf(attend, {}), "flashDecodeVector_latent_64_512_1");
  EXPECT_EQ(kernelOf(attend, {.family = "host"}), "flashDecodeVector_latent_64_512_4_fewLanes");
  attend.cache = DType::bf16;
  EXPECT_EQ(kernelOf(attend, kGPU), "flashPrefill_latent_f32");
  attend.group = 1;
  EXPECT_EQ(kernelOf(attend, kGPU), "flashDecodeVector_latent_64_512_1");
  EXPECT_EQ(kernelOf(attend, {.family = "host"}), "flashDecodeVector_latent_64_512_1_fewLanes");
  attend.rows = 2;
  EXPECT_EQ(kernelOf(attend, kGPU), "flashPrefill_latent_f32");
  attend.options.kernel = FlashDecodeKernel::vector;
  EXPECT_EQ(kernelOf(attend, kGPU), "flashDecodeVector_latent_64_512_1");
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

// Random cases would leave a kernel out unseen.
TEST(FlashLatent, CasesReachEveryKernelAndConstant) {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;
  for (const Case& attend : anyCases()) {
    const Context context(attend.name);
    for (const DeviceProfile& profile : {DeviceProfile{}, kGPU}) {
      const Dispatch first = REQUIRE(plan(planOp(attend), profile)).dispatches.at(0);
      EXPECT(first.threadgroupMemory.at(0).bytes <= 32u * 1024);
      functions.insert(first.kernel.function);
      for (const FunctionConstant& constant : first.kernel.constants) values[constant.index].insert(constant.bits);
    }
  }
  EXPECT_EQ(functions, (std::set<std::string>{"flashDecodeVector_latent_64_512_1", "flashPrefill_latent_f16",
                                              "flashPrefill_latent_f32"}));
  for (const auto& [index, seen] : values) {
    // The device's, or never asked for here.
    const std::set<uint32_t> fixed = {kFlashDecodeHasRowMajorMatrices, kFlashDecodeIsPadded, kFlashDecodeParts,
                                      kFlashDecodeMergesTogether};
    if (seen.size() < 2 && !fixed.contains(index)) {
      fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
    }
  }
}

}  // namespace mnk::test
