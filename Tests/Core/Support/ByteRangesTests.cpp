// Compares sets of bytes with one flag per byte.
#include "Harness/Check.hpp"
#include "Harness/Seeded.hpp"
#include "Support/Bytes.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

constexpr uint64_t kEnd = 40;

struct Both {
  ByteRanges ranges;
  std::vector<bool> flags = std::vector<bool>(kEnd);

  void add(uint64_t begin, uint64_t end) {
    ranges.add(begin, end);
    for (uint64_t i = begin; i < end; ++i) flags[i] = true;
  }
};

Both randomSet(Seeded& random) {
  Both both;
  for (uint64_t left = random.below(6); left > 0; --left) {
    const uint64_t begin = random.below(kEnd);
    both.add(begin, begin + random.below(kEnd - begin + 1));
  }
  return both;
}

std::vector<bool> flagsOf(const ByteRanges& ranges) {
  std::vector<bool> flags(kEnd);
  uint64_t last = 0;
  for (const auto& range : ranges.ranges()) {
    EXPECT(range.begin < range.end);
    EXPECT(last == 0 || range.begin > last);  // neither touching nor overlapping
    last = range.end;
    for (uint64_t i = range.begin; i < range.end; ++i) flags[i] = true;
  }
  return flags;
}

}  // namespace

TEST(ByteRanges, AgreeWithFlags) {
  Seeded random(11);
  for (int round = 0; round < 2000; ++round) {
    const Both a = randomSet(random), b = randomSet(random);
    EXPECT(flagsOf(a.ranges) == a.flags);
    std::vector<bool> left(kEnd);
    std::optional<uint64_t> outside, shared;
    for (uint64_t i = kEnd; i-- > 0;) {
      left[i] = a.flags[i] && !b.flags[i];
      if (left[i]) outside = i;
      if (a.flags[i] && b.flags[i]) shared = i;
    }
    EXPECT(flagsOf(a.ranges.without(b.ranges)) == left);
    EXPECT(a.ranges.firstOutside(b.ranges) == outside);
    EXPECT(a.ranges.firstShared(b.ranges) == shared);
    EXPECT(b.ranges.firstShared(a.ranges) == shared);
  }
}
