// FlashDecode with many rows, which GPUs attend with in one dispatch: against attention in double on every device, and
// what the plan says of it.
#include <array>
#include <bit>
#include <limits>
#include <set>

#include "FlashDecodeRun.hpp"
#include "Harness/Check.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/Common/EveryRun.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"

namespace mnk::test {

namespace {

using Case = FlashDecodeCase;

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
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
  const bool isCoded = std::has_single_bit(attend.headDim) && number % 2 == 1;
  const uint64_t drawn = number / 2;
  attend.cache = kFloats[drawn % 3];
  if (!isCoded) return;
  if (drawn % 4 == 3) {
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
}

// Any options that go together, over any storage.
Case anyCase(uint64_t number, Seeded& random) {
  const auto isDrawn = [&](uint64_t of) { return random.below(of) == 0; };
  Case attend = promptCase("", kHeadDims[number % std::size(kHeadDims)], 9 + random.below(32));
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
  attend.hasSlopes = isDrawn(4);
  attend.givesPartials = isDrawn(5);
  attend.hasSinks = !attend.givesPartials && isDrawn(4);
  attend.givesLogSumExp = isDrawn(3);
  attend.options.splits = static_cast<uint32_t>(random.below(4));
  attend.cacheShift = isDrawn(5) ? (attend.isQuantized() ? 1 : byteSize(attend.cache)) : 0;
  attend.queryShift = isDrawn(5) ? byteSize(attend.queries) : 0;
  attend.intoShift = isDrawn(5) ? byteSize(attend.givesPartials ? DType::f32 : attend.into) : 0;
  attend.hasScratch = isDrawn(4);
  attend.name = fmt::format("case {}: {} rows of groups of {}, {} of {}", number, attend.rows, attend.group,
                            attend.headDim, attend.isQuantized() ? attend.keyCodec->text() : name(attend.cache));
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

TEST(FlashPrefill, AttendsWithAnyOptionsOverAnyStorage) {
  run(anyCases(240));
}

}  // namespace mnk::test
