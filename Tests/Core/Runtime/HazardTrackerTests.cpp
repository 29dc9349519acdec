// Overlaps of regions, sets of regions, and hazards between dispatches, compared with sets of bytes and with each pair
// of accesses.
#include "Runtime/HazardTracker.hpp"

#include <bitset>

#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kHuge = uint64_t{1} << 63;

std::string text(const Region& region) {
  return fmt::format("{} rows of {} at {} by {}", region.rows, region.rowBytes, region.offset, region.rowStride);
}

using ModelBytes = std::bitset<512>;

ModelBytes modelBytes(const Region& region) {
  ModelBytes bytes;
  for (uint64_t row = 0; row < region.rows; ++row) {
    for (uint64_t i = 0; i < region.rowBytes; ++i) bytes.set(region.offset + row * region.rowStride + i);
  }
  return bytes;
}

// A range may be passed as one row, or as rows without gaps.
bool isExact(const Region& a, const Region& b) {
  return a.rows <= 1 || b.rows <= 1 || a.rowStride == b.rowStride;
}

// In either order, and at addresses near 2^63.
void expectModel(Region a, Region b) {
  const bool shared = (modelBytes(a) & modelBytes(b)).any();
  const bool got = overlap(a, b), reversed = overlap(b, a);
  for (Region* region : {&a, &b}) region->offset += kHuge - 1000;
  if (got == reversed && got == overlap(a, b) && (got == shared || (got && !isExact(a, b)))) return;
  fail(__FILE__, __LINE__, fmt::format("overlap of {} and {}: got {}, expected {}", text(a), text(b), got, shared));
}

std::vector<Touched> touchedBy(std::vector<Binding> buffers) {
  std::vector<Touched> touched;
  CountedDispatch counted;
  counted.dispatch.buffers = std::move(buffers);
  counted.count();
  const std::vector<BoundMemory> memory = takeMemory(counted.dispatch);
  addTouched(counted, memory, {}, touched);
  return touched;
}

// Two buffers that share half of their bytes, and one in other memory.
struct SharedMemory {
  int spaces[2] = {};
  std::shared_ptr<Buffer> buffers[3] = {std::make_shared<PlanBuffer>(64, 0, &spaces[0]),
                                        std::make_shared<PlanBuffer>(64, 32, &spaces[0]),
                                        std::make_shared<PlanBuffer>(64, 0, &spaces[1])};

  struct Accesses {
    Binding binding;
    ModelBytes reads, writes;
  };
  // A binding of some of a buffer's bytes that reads or writes some of these.
  Accesses draw(uint32_t index, uint64_t stride, Seeded& random) const {
    const uint64_t which = random.below(3), offset = random.below(32), length = 1 + random.below(64 - offset);
    Accesses drawn{.binding = {.index = index, .buffer = buffers[which], .offset = offset, .length = length}};
    const auto add = [&](std::vector<Region>& regions, ModelBytes& bytes) {
      Region rows{.offset = random.below(length), .rowBytes = 0, .rowStride = stride, .rows = random.below(5)};
      if (rows.rows == 0) rows = {.offset = 0, .rowBytes = length, .rowStride = length, .rows = 1};
      while (rows.rows > 1 && rows.offset + (rows.rows - 1) * stride >= length) --rows.rows;
      if (rows.rowBytes == 0) {
        rows.rowBytes = random.below(std::min<uint64_t>(9, length - rows.offset - (rows.rows - 1) * stride + 1));
      }
      regions.push_back(rows);
      rows.offset += offset + buffers[which]->range().begin + (which == 2 ? 256 : 0);
      bytes |= modelBytes(rows);
    };
    const uint64_t access = random.below(4);
    if (access & 1) add(drawn.binding.reads, drawn.reads);
    if (access & 2) add(drawn.binding.writes, drawn.writes);
    return drawn;
  }
};

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

Region rarelyOverlappingRegion(Seeded& random) {
  return {.offset = random.below(4000),
          .rowBytes = 1 + random.below(3),
          .rowStride = uint64_t{64} << random.below(2),
          .rows = 1 + random.below(40)};
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

Region smallOrHugeRegion(Seeded& random) {
  Region region = random.below(3) == 0 ? hugeRegion(random) : smallRegion(random);
  if (random.below(2) == 0 && region.offset < 1000) region.offset += kHuge - 500;
  if (region.rows > 1 && region.rowStride != 0 && region.offset > 1000) {
    region.rows = std::min<uint64_t>(region.rows, 2);
  }
  return region;
}

// Adds accesses that do not conflict, as an encoder does, and some that do. By definition, an access conflicts if it
// does so with an earlier one.
void expectPairwise(uint64_t stream, uint32_t rounds, Region (*makeRegion)(Seeded&)) {
  Seeded random(stream);
  const int spaces[2] = {};
  TouchedIndex tracker;
  std::vector<Touched> added;
  uint32_t conflicts = 0, frees = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    const Touched next{
        .space = &spaces[random.below(2)], .region = makeRegion(random), .isWrite = random.below(3) == 0};
    const bool expected = std::any_of(added.begin(), added.end(), [&](const Touched& earlier) {
      return earlier.space == next.space && (earlier.isWrite || next.isWrite) && overlap(earlier.region, next.region);
    });
    if (tracker.conflicts(next) != expected) {
      return fail(__FILE__, __LINE__,
                  fmt::format("round {}, {} {}: expected {}", round, next.isWrite ? "write" : "read", text(next.region),
                              expected ? "a conflict" : "none"));
    }
    ++(expected ? conflicts : frees);
    if (expected && random.below(2) == 0) continue;
    if (random.below(expected ? 8 : 200) == 0) {
      tracker.clear();
      added.clear();
    }
    tracker.add(next);
    added.push_back(next);
  }
  EXPECT(conflicts > rounds / 20);
  EXPECT(frees > rounds / 20);
}

}  // namespace

// Dispatches with several bindings, each relative to its slice of a buffer, until the next barrier.
TEST(HazardTracker, DispatchesAgreeWithSetsOfBytes) {
  Seeded random(20);
  const SharedMemory memory;
  uint32_t frees = 0, readsOfWritten = 0, writesOfRead = 0, writesOfWritten = 0;
  for (int round = 0; round < 5000; ++round) {
    const uint64_t stride = random.below(20);  // of all rows, because only then are overlaps of rows exact
    TouchedIndex index;
    ModelBytes read, written;
    for (uint64_t left = 1 + random.below(12); left > 0; --left) {
      std::vector<Binding> bindings;
      ModelBytes reads, writes;
      for (uint32_t i = 0; i <= random.below(3); ++i) {
        const SharedMemory::Accesses drawn = memory.draw(i, stride, random);
        bindings.push_back(drawn.binding);
        reads |= drawn.reads;
        writes |= drawn.writes;
      }
      const bool isRaw = (reads & written).any(), isWar = (writes & read).any(), isWaw = (writes & written).any();
      const std::vector<Touched> touched = touchedBy(bindings);
      EXPECT_EQ(index.conflicts(touched), isRaw || isWar || isWaw);
      readsOfWritten += isRaw && !isWar && !isWaw;
      writesOfRead += isWar && !isRaw && !isWaw;
      writesOfWritten += isWaw && !isRaw && !isWar;
      frees += !isRaw && !isWar && !isWaw;
      if (random.below(8) == 0) {
        index.clear();
        read.reset();
        written.reset();
      }
      for (const Touched& each : touched) index.add(each);
      read |= reads;
      written |= writes;
    }
  }
  for (const uint32_t bin : {frees, readsOfWritten, writesOfRead, writesOfWritten}) EXPECT(bin > 1000);
}

TEST(HazardTracker, OverlapAgreesWithSetsOfBytes) {
  Seeded random(21);
  const auto draw = [&] {
    return Region{.offset = random.below(48),
                  .rowBytes = random.below(8),
                  .rowStride = random.below(12),
                  .rows = random.below(7)};
  };
  for (int i = 0; i < 40'000; ++i) {
    Region a = draw(), b = draw();
    expectModel(a, b);
    b.rowStride = a.rowStride;
    expectModel(a, b);
    a.rows = 1;
    expectModel(a, b);
  }
}

TEST(HazardTracker, DistinguishesWideInterleavedRows) {
  // Two tokens of a head-major cache: equal strides, adjacent rows, far more rows than fit in 32 bits.
  const Region first{.offset = 0, .rowBytes = 256, .rowStride = 1 << 20, .rows = uint64_t{1} << 40};
  for (const auto& [offset, isShared] : {std::pair(256, false), {255, true}, {(1 << 20) - 255, true}}) {
    Region second = first;
    second.offset = static_cast<uint64_t>(offset);
    EXPECT_EQ(overlap(first, second), isShared);
  }
}

TEST(HazardTracker, ManyRepeatedRowsStillConflict) {
  // These rows have 2^64 bytes, a count that overflows 64 bits.
  const Region repeated{.offset = 4, .rowBytes = 2, .rowStride = 0, .rows = kHuge};
  EXPECT(overlap(repeated, {.offset = 5, .rowBytes = 1, .rowStride = 1, .rows = 1}));
  EXPECT(!overlap(repeated, {.offset = 6, .rowBytes = 1, .rowStride = 1, .rows = 1}));
  Binding writer = Binding::whole(0, planTensor(DType::u8, {16}), Access::write), reader = writer;
  std::swap(reader.reads, reader.writes);
  writer.writes = {repeated};
  TouchedIndex index;
  for (const Touched& touched : touchedBy({writer})) index.add(touched);
  EXPECT(index.conflicts(touchedBy({reader})));
}

TEST(RegionSet, AgreesWithThePairwiseDefinition) {
  for (uint64_t stream = 0; stream < 10; ++stream) {
    for (const uint64_t more : {0, 10}) expectPairwise(50 + stream + more, 2000, smallRegion);
    expectPairwise(80 + stream, 2000, rarelyOverlappingRegion);
    expectPairwise(100 + stream, 500, hugeRegion);
    expectPairwise(120 + stream, 1000, smallOrHugeRegion);
  }
}

// Tokens appended to sequences of a cache, head by head: the set grows with neither the tokens nor the heads.
TEST(RegionSet, CombinesTokensOfSequences) {
  constexpr uint64_t kRowBytes = 128;
  struct Appends {
    uint64_t sequences, tokens, slots, heads;
    bool isBackward = false;
  };
  for (const Appends& appends :
       {Appends{1, 1000, 1000, 32}, {1, 1000, 1000, 32, true}, {1, 1000, 1000, 1}, {200, 3, 16, 8}}) {
    for (const uint64_t base : {0, 4096, 15 * 128 + 64, 1 << 20}) {
      const Context context(fmt::format("{} sequences at {}", appends.sequences, base));
      RegionSet set;
      for (uint64_t i = 0; i < appends.tokens; ++i) {
        const uint64_t token = appends.isBackward ? appends.tokens - 1 - i : i;
        for (uint64_t sequence = 0; sequence < appends.sequences; ++sequence) {
          const uint64_t stride = appends.slots * kRowBytes;
          const Region rows{.offset = base + sequence * appends.heads * stride + token * kRowBytes,
                            .rowBytes = kRowBytes,
                            .rowStride = stride,
                            .rows = appends.heads};
          EXPECT(!set.overlaps(rows));
          set.add(rows);
          EXPECT(set.overlaps(rows));
        }
        EXPECT(set.count() <= appends.sequences + 7);  // the bounds of each have gaps in between
      }
    }
  }
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
