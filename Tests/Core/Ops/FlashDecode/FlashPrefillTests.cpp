// FlashDecode with many rows, which GPUs attend with in one dispatch: against attention in double on every device, and
// what the plan says of it.
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"
#include "Runtime/ThreadgroupShape.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr uint64_t kAnyCases = 120;
constexpr uint64_t kHeadDims[] = {64, 80, 96, 128, 192, 256};
const DeviceProfile kGPU{.family = "apple9", .cores = 10, .matrixLayout = MatrixLayout::interleaved};

void run(const std::vector<Case>& cases) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (const Case& attend : cases) all.push_back(prepared(attend, random));
  runCases(all, &FlashDecodeRun::expectAttended);
}

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

void setStorage(Case& attend, uint64_t number) {
  const bool isCoded = number % 2 == 1;
  const uint64_t drawn = number / 2;
  attend.cache = kFloats[drawn % 3];
  if (!isCoded) return;
  if (drawn % 4 == 3 && std::has_single_bit(attend.headDim)) {
    const uint32_t bits = attend.headDim == 256 ? std::array{4u, 5u, 6u, 8u}[drawn / 4 % 4] : 4u;
    attend.keyCodec = KVCodec{KVCodecName::mlx1, bits};
    attend.valueCodec = KVCodec{KVCodecName::mlx1, bits == 6 ? 4 : bits};
    return;
  }
  attend.keyCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn % 7)};
  attend.valueCodec = KVCodec{.bits = static_cast<uint32_t>(2 + drawn / 7 % 7)};
  attend.hasKeyMeans = drawn % 3 == 0;
  attend.hasValueMeans = drawn % 5 == 0;
  attend.hasChannelScales = drawn % 4 == 1;
  attend.hasWideScales = drawn % 3 == 1;
  if (drawn % 11 < 3) {
    attend.keyCodec.reset();
    attend.hasKeyMeans = attend.hasChannelScales = false;
  } else if (drawn % 11 < 6) {
    attend.valueCodec.reset();
    attend.hasValueMeans = false;
  }
}

std::string storageText(const Case& attend) {
  const auto text = [&](const std::optional<KVCodec>& codec) {
    return codec ? codec->text() : std::string(name(attend.cache));
  };
  return fmt::format("{} and {}", text(attend.keyCodec), text(attend.valueCodec));
}

// Any options that go together, over any storage.
Case anyCase(uint64_t number, Seeded& random) {
  const auto isDrawn = [&](uint64_t of) { return random.below(of) == 0; };
  Case attend = promptCase("", kHeadDims[number % std::size(kHeadDims)], 9 + random.below(24));
  attend.valueHeadDim = attend.headDim;
  setStorage(attend, random.next() >> 8);
  attend.queries = kFloats[random.below(3)];
  attend.into = kFloats[random.below(3)];
  attend.kvHeads = 1 + random.below(2);
  attend.group = std::array{1, 1, 2, 3, 4, 5, 8}[random.below(7)];
  attend.layout = isDrawn(2) ? KVLayout::headMajor : KVLayout::tokenMajor;
  attend.queryPlaces = static_cast<QueryPlaces>(random.below(4));
  const uint64_t length = attend.rows + (isDrawn(3) ? 0 : random.below(50));
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
    const uint64_t held = isRing ? attend.capacity - attend.pinned : length;
    const uint64_t most = held > attend.rows ? held - attend.rows + 1 : 1;
    const bool isFull = isRing && (length > attend.capacity || attend.sequences[0].highest != 0);
    attend.options.window = static_cast<uint32_t>(1 + random.below(isFull ? std::max<uint64_t>(most, 6) - 5 : length));
    attend.options.windowSeesPinned = isDrawn(2);
  }
  if (isDrawn(4)) attend.options.softcap = 20;
  if (isDrawn(3)) {
    attend.mask = MaskCase{.dtype = kFloats[random.below(3)],
                           .rank = static_cast<uint32_t>(2 + random.below(3)),
                           .servesAllHeads = isDrawn(2),
                           .servesAllRows = isDrawn(3),
                           .hasEmptyRows = isDrawn(2)};
    if (attend.sequences.size() > 1 && attend.mask->rank < 4) attend.mask->rank = 4;
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
  attend.name = fmt::format("case {}: {} rows of groups of {}, {} of {}", number, attend.rows, attend.group,
                            attend.headDim, storageText(attend));
  return attend;
}

std::vector<Case> anyCases(uint64_t count) {
  Seeded random(7);
  std::vector<Case> cases;
  for (uint64_t number = 0; cases.size() < count; ++number) {
    Case attend = anyCase(number, random);
    if (plan(planOp(attend))) cases.push_back(std::move(attend));  // the others break a rule
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
      attend.cache = attend.queries = attend.into = kFloats[(rows + headDim / 16) % 3];
      cases.push_back(attend);
    }
  }
  run(cases);
}

// More rows than fit in threadgroup memory at once, before they attend and after; codes; simdgroups that share rows.
TEST(FlashPrefill, UsesThreadgroupMemoryInTurns) {
  Case dense = promptCase("dense", 128, 50), coded = promptCase("codes", 256, 41, 3);
  coded.keyCodec = coded.valueCodec = KVCodec{.bits = 3};
  run({dense, coded});
}

TEST(FlashPrefill, AttendsWithAnyOptionsOverAnyStorage) {
  run(anyCases(kAnyCases));
}

// A pipeline may allow fewer threads than were planned.
TEST(FlashPrefill, AttendsInTurnsWithFewerSimdgroups) {
  Seeded random;
  std::vector<PreparedFlashDecode> all;
  for (uint64_t headDim : {96, 256}) {
    Case attend = promptCase(fmt::format("{}", headDim), headDim, 40, 5);
    attend.group = 2;
    all.push_back(prepared(attend, random));
  }
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const PreparedFlashDecode& each : all) {
      for (const uint32_t simdgroups : {2, 3}) {
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
          attend.cache = kFloats[cases.size() % 3];
          attend.queries = kFloats[cases.size() / 3 % 3];
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
  run(cases);
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
    uint64_t rows, length, tiles, keys;
    uint32_t simdgroups;
  };
  // Keys that tiles see, all together.
  for (const auto& [rows, length, tiles, keys, simdgroups] :
       {Golden{512, 512, 11, 3152, 12}, {512, 4096, 11, 42576, 12}, {9, 9, 1, 9, 3}, {96, 4096, 2, 8144, 12}}) {
    const Context context(fmt::format("{} rows over {} keys", rows, length));
    const FlashDecode op = layerOf(rows, length);
    const Plan planned = REQUIRE(plan(op, kGPU)), passes = REQUIRE(plan(op));
    const Dispatch& dispatch = onlyDispatch(planned);
    EXPECT_EQ(dispatch.kernel.function, "flashPrefill_f16_128");
    EXPECT_EQ(dispatch.grid.extent, (Size3{1, 8, static_cast<uint32_t>(tiles)}));
    EXPECT_EQ(dispatch.grid.threadgroup, (Size3{32 * simdgroups, 1, 1}));
    EXPECT_EQ(dispatch.countedBytesRead(), 8 * keys * 512 + rows * 32 * 256);
    EXPECT_EQ(planned.scratchBytes, 0u);
    EXPECT(dispatch.threadgroupMemory.at(0).bytes <= 32u * 1024);
    EXPECT_EQ(passes.dispatches.size(), (rows + 7) / 8);
    if (rows == 512) EXPECT(4 * bytesRead(planned) <= bytesRead(passes));
  }
}

TEST(FlashPrefill, IsChosenByRowsHeadDimAndDevice) {
  const auto isChosen = [](const Case& attend, const DeviceProfile& profile) {
    return REQUIRE(plan(planOp(attend), profile)).dispatches.at(0).kernel.function.starts_with("flashPrefill_");
  };
  EXPECT(isChosen(promptCase("", 128, 9), kGPU));
  EXPECT(!isChosen(promptCase("", 128, 8), kGPU));
  for (uint64_t headDim : {32, 72, 112, 512}) EXPECT(!isChosen(promptCase("", headDim, 100), kGPU));
  EXPECT(!isChosen(promptCase("", 128, 100), {}));
  EXPECT(!isChosen(promptCase("", 128, 100), {.family = "apple9"}));
  EXPECT(!isChosen(promptCase("", 128, 100), {.family = "host", .matrixLayout = MatrixLayout::interleaved}));
  Case attend = promptCase("", 128, 100);
  attend.options.kernel = FlashDecodeKernel::vector;
  EXPECT(!isChosen(attend, kGPU));
  attend.options.kernel = FlashDecodeKernel::matrix;
  EXPECT(!isChosen(attend, kGPU));
}

TEST(FlashPrefill, SimdgroupsThatShareRowsStayTogether) {
  for (const uint64_t headDim : kHeadDims) {
    const Plan planned = REQUIRE(plan(planOp(promptCase("", headDim, 100)), kGPU));
    EXPECT_EQ(onlyDispatch(planned).grid.fewestThreads, headDim > 128 ? 64u : 32u);
  }
}

// Random cases would leave a kernel out unseen.
TEST(FlashPrefill, CasesReachEveryKernelAndConstant) {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;
  for (const Case& attend : anyCases(kAnyCases)) {
    const Context context(attend.name);
    const Plan planned = REQUIRE(plan(planOp(attend), kGPU));
    const Dispatch& first = planned.dispatches.at(0);
    EXPECT(first.kernel.function.starts_with("flashPrefill_"));
    EXPECT(planned.dispatches.size() <= 2);
    EXPECT(first.threadgroupMemory.at(0).bytes <= 32u * 1024);
    functions.insert(first.kernel.function);
    for (const FunctionConstant& constant : first.kernel.constants) values[constant.index].insert(constant.bits);
  }
#define ROW(type, dim, ...) \
  if (!functions.contains("flashPrefill_" #type "_" #dim)) fail(__FILE__, __LINE__, "no case has " #type " " #dim);
  MNK_FLASH_PREFILL_INSTANCES(ROW)
#undef ROW
  for (const auto& [index, seen] : values) {
    // The device's; what only the vector kernel has; what prefill never does, and always; what FlashLatent has.
    const std::set<uint32_t> fixed = {kFlashDecodeHasRowMajorMatrices, kFlashDecodeIsPadded, kFlashDecodeMergesTogether,
                                      kFlashDecodeHasTokens, kFlashDecodeIsOneTensor};
    if (seen.size() < 2 && !fixed.contains(index)) {
      fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
    }
  }
}

}  // namespace mnk::test
