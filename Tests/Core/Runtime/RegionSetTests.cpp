#include "Runtime/HazardTracker.hpp"

#include <bitset>

#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kHuge = uint64_t{1} << 63;

std::string regionText(const Region& region) {
  return fmt::format("{} rows of {} at {} by {}", region.rows, region.rowBytes, region.offset, region.rowStride);
}

// Small regions that often overlap, with few distinct strides, so that many in a set share one.
Region smallRegion(Seeded& random) {
  Region region{.offset = random.below(400), .rowBytes = random.below(12), .rowStride = random.below(14), .rows = 1};
  if (random.below(2) == 0) region.rowStride = 16 + 16 * random.below(2);
  switch (random.below(8)) {
    case 0:
      region.rows = random.below(2);
      break;
    case 1:
      region.rowBytes = random.below(60);  // rows that overlap each other
      region.rows = random.below(4);
      break;
    default:
      region.rows = random.below(9);
  }
  return region;
}

// Ends before 2^64.
Region hugeRegion(Seeded& random) {
  const uint64_t near = random.below(64);
  switch (random.below(6)) {
    case 0:
      return {.offset = random.below(256), .rowBytes = 1 + random.below(4), .rowStride = 0, .rows = kHuge - near};
    case 1:
      return {.offset = random.below(256), .rowBytes = 1, .rowStride = 1, .rows = kHuge - near};
    case 2:
      return {.offset = near, .rowBytes = 1 + random.below(3), .rowStride = 4, .rows = (kHuge >> 2) - near};
    case 3:
      return {.offset = kHuge - near, .rowBytes = 1 + random.below(40), .rowStride = 16, .rows = 1 + random.below(8)};
    case 4:
      return {.offset = near, .rowBytes = 1 + random.below(64), .rowStride = kHuge - random.below(2), .rows = 2};
    default:
      return {
          .offset = kHuge - near, .rowBytes = random.below(2) == 0 ? near : kHuge - 1, .rowStride = near, .rows = 1};
  }
}

// The definition of the tracker: compares each access with each earlier one.
class PairwiseTracker {
 public:
  bool conflicts(const Touched& next) const {
    return std::any_of(touched_.begin(), touched_.end(), [&](const Touched& earlier) {
      return earlier.space == next.space && (earlier.isWrite || next.isWrite) && overlap(earlier.region, next.region);
    });
  }
  void add(const Touched& touched) { touched_.push_back(touched); }
  void clear() { touched_.clear(); }

 private:
  std::vector<Touched> touched_;
};

// Adds accesses that do not conflict, as an encoder does, and some that do.
template <typename MakeRegion>
void expectPairwise(uint64_t stream, uint32_t rounds, MakeRegion makeRegion) {
  Seeded random(stream);
  const int spaces[2] = {};
  TouchedIndex tracker;
  PairwiseTracker definition;
  uint32_t conflicts = 0, frees = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    const Touched next{
        .space = &spaces[random.below(2)], .region = makeRegion(random), .isWrite = random.below(3) == 0};
    const bool expected = definition.conflicts(next);
    if (tracker.conflicts(next) != expected) {
      return fail(__FILE__, __LINE__,
                  fmt::format("round {}, {} {}: expected {}", round, next.isWrite ? "write" : "read",
                              regionText(next.region), expected ? "a conflict" : "none"));
    }
    ++(expected ? conflicts : frees);
    if (expected && random.below(2) == 0) continue;
    if (random.below(expected ? 8 : 200) == 0) {
      tracker.clear();
      definition.clear();
    }
    tracker.add(next);
    definition.add(next);
  }
  EXPECT(conflicts > rounds / 20);
  EXPECT(frees > rounds / 20);
}

}  // namespace

TEST(RegionSet, AgreesWithThePairwiseDefinition) {
  for (uint64_t stream = 0; stream < 20; ++stream) expectPairwise(50 + stream, 2000, smallRegion);
}

TEST(RegionSet, AgreesForRegionsThatRarelyOverlap) {
  for (uint64_t stream = 0; stream < 10; ++stream) {
    expectPairwise(80 + stream, 2000, [](Seeded& random) {
      return Region{.offset = random.below(4000),
                    .rowBytes = 1 + random.below(3),
                    .rowStride = uint64_t{64} << random.below(2),
                    .rows = 1 + random.below(40)};
    });
  }
}

TEST(RegionSet, AgreesForHugeRegions) {
  for (uint64_t stream = 0; stream < 10; ++stream) expectPairwise(100 + stream, 500, hugeRegion);
  for (uint64_t stream = 0; stream < 10; ++stream) {
    expectPairwise(120 + stream, 1000, [](Seeded& random) {
      Region region = random.below(3) == 0 ? hugeRegion(random) : smallRegion(random);
      if (random.below(2) == 0 && region.offset < 1000) region.offset += kHuge - 500;
      if (region.rows > 1 && region.rowStride != 0 && region.offset > 1000)
        region.rows = std::min<uint64_t>(region.rows, 2);
      return region;
    });
  }
}

// Tokens appended to one sequence of a cache, head by head: the set grows with neither the tokens nor the heads.
TEST(RegionSet, CombinesTokensOfOneSequence) {
  constexpr uint64_t kTokens = 1000, kRowBytes = 128;
  for (const uint64_t base : {0, 4096, 1 << 20}) {
    for (const bool isBackward : {false, true}) {
      RegionSet set;
      for (uint64_t i = 0; i < kTokens; ++i) {
        const uint64_t token = isBackward ? kTokens - 1 - i : i;
        const Region rows{
            .offset = base + token * kRowBytes, .rowBytes = kRowBytes, .rowStride = kTokens * kRowBytes, .rows = 32};
        EXPECT(!set.overlaps(rows));
        set.add(rows);
        EXPECT(set.overlaps(rows));
      }
      EXPECT(set.count() <= 8);
    }
  }
}

TEST(RegionSet, CombinesTokensOfManySequences) {
  constexpr uint64_t kSequences = 200, kTokens = 3, kRowBytes = 128, kStride = 16 * kRowBytes, kHeads = 8;
  for (const uint64_t base : {0, 4096, 15 * 128 + 64}) {
    RegionSet set;
    for (uint64_t token = 0; token < kTokens; ++token) {
      for (uint64_t sequence = 0; sequence < kSequences; ++sequence) {
        const Region rows{.offset = base + sequence * kHeads * kStride + token * kRowBytes,
                          .rowBytes = kRowBytes,
                          .rowStride = kStride,
                          .rows = kHeads};
        EXPECT(!set.overlaps(rows));
        set.add(rows);
        EXPECT(set.overlaps(rows));
      }
      EXPECT(set.count() <= kSequences + 8);  // the bounds of each have gaps in between
    }
  }
}

TEST(RegionSet, CombinesAdjacentRanges) {
  RegionSet set;
  for (const uint64_t begin : {30, 10, 20, 0}) set.add({.offset = begin, .rowBytes = 10});
  EXPECT_EQ(set.count(), size_t{1});
}

TEST(RegionSet, IntervalSetAgreesWithASetOfBytes) {
  constexpr size_t kBytes = 200;
  Seeded random(140);
  IntervalSet set;
  std::bitset<kBytes> bytes;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t begin = random.below(kBytes), end = std::min<uint64_t>(begin + random.below(20), kBytes);
    bool expected = false;
    for (uint64_t byte = begin; byte < end; ++byte) expected = expected || bytes[byte];
    if (set.overlaps(begin, end) != expected)
      fail(__FILE__, __LINE__, fmt::format("[{}, {}) in step {}", begin, end, i));
    const bool adds = random.below(2) == 0;
    adds ? set.add(begin, end) : set.remove(begin, end);
    for (uint64_t byte = begin; byte < end; ++byte) bytes[byte] = adds;
    size_t ranges = 0;
    for (size_t byte = 0; byte < kBytes; ++byte) ranges += bytes[byte] && (byte == 0 || !bytes[byte - 1]);
    EXPECT_EQ(set.count(), ranges);
  }
}

}  // namespace mnk::test
