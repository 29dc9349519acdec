#include "Runtime/HazardTracker.hpp"

#include <bitset>

#include "Harness/Check.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

std::vector<Touched> touchedBy(std::vector<Binding> buffers) {
  std::vector<Touched> touched;
  CountedDispatch counted;
  counted.dispatch.buffers = std::move(buffers);
  counted.count();
  const std::vector<BoundMemory> memory = takeMemory(counted.dispatch);
  addTouched(counted, memory, {}, touched);
  return touched;
}

// Whether work that touches `second` must wait for work that touches `first`.
bool mustWait(const Binding& first, const Binding& second) {
  TouchedIndex index;
  for (const Touched& touched : touchedBy({first})) index.add(touched);
  return index.conflicts(touchedBy({second}));
}

Binding reading(const Tensor& tensor) {
  return Binding::whole(0, tensor, Access::read);
}
Binding writing(const Tensor& tensor) {
  return Binding::whole(0, tensor, Access::write);
}

constexpr size_t kModelBytes = 256;
using ModelBytes = std::bitset<kModelBytes>;

ModelBytes modelBytes(const Region& region) {
  ModelBytes bytes;
  for (uint64_t row = 0; row < region.rows; ++row) {
    for (uint64_t i = 0; i < region.rowBytes; ++i) bytes.set(region.offset + row * region.rowStride + i);
  }
  return bytes;
}

std::string text(const Region& region) {
  return fmt::format("{} rows of {} at {} by {}", region.rows, region.rowBytes, region.offset, region.rowStride);
}

Region drawnRegion(Seeded& random) {
  return {
      .offset = random.below(48), .rowBytes = random.below(8), .rowStride = random.below(12), .rows = random.below(7)};
}

// A range may be passed as one row, or as rows without gaps.
bool isExact(const Region& a, const Region& b) {
  return a.rows <= 1 || b.rows <= 1 || a.rowStride == b.rowStride;
}

void expectModel(const Region& a, const Region& b) {
  const bool shared = (modelBytes(a) & modelBytes(b)).any();
  const bool got = overlap(a, b);
  if (got == shared || (got && !isExact(a, b))) return;
  fail(__FILE__, __LINE__, fmt::format("overlap of {} and {}: got {}, expected {}", text(a), text(b), got, shared));
}

}  // namespace

TEST(HazardTracker, ReadersDoNotWaitForReaders) {
  const Tensor tensor = planTensor(DType::f32, {8});
  EXPECT(!mustWait(reading(tensor), reading(tensor)));
}

TEST(HazardTracker, DependentAccessesWait) {
  const Tensor tensor = planTensor(DType::f32, {8});
  EXPECT(mustWait(writing(tensor), reading(tensor)));
  EXPECT(mustWait(reading(tensor), writing(tensor)));
  EXPECT(mustWait(writing(tensor), writing(tensor)));
  const Binding both = Binding::whole(0, tensor, Access::readWrite);
  EXPECT(mustWait(both, reading(tensor)));
  EXPECT(mustWait(reading(tensor), both));
}

TEST(HazardTracker, IgnoresOtherMemory) {
  EXPECT(!mustWait(writing(planTensor(DType::f32, {8})), writing(planTensor(DType::f32, {8}))));
}

TEST(HazardTracker, DisjointSlicesDoNotConflict) {
  const Tensor whole = planTensor(DType::f32, {8, 2});
  const auto slice = [&](uint64_t begin, uint64_t count) { return REQUIRE(whole.slice(begin, count)); };
  EXPECT(!mustWait(writing(slice(0, 4)), writing(slice(4, 4))));
  EXPECT(!mustWait(writing(slice(4, 4)), writing(slice(0, 4))));
  EXPECT(mustWait(writing(slice(0, 5)), writing(slice(4, 4))));
  EXPECT(mustWait(writing(slice(4, 4)), writing(slice(0, 5))));
  EXPECT(mustWait(writing(slice(3, 1)), reading(whole)));
  EXPECT(!mustWait(writing(slice(3, 0)), writing(whole)));
}

TEST(HazardTracker, OneSharedByteConflicts) {
  const Tensor whole = planTensor(DType::u8, {16});
  const auto slice = [&](uint64_t begin, uint64_t count) { return REQUIRE(whole.slice(begin, count)); };
  EXPECT(mustWait(writing(slice(0, 8)), reading(slice(7, 1))));
  EXPECT(!mustWait(writing(slice(0, 8)), reading(slice(8, 1))));
  EXPECT(mustWait(writing(slice(8, 8)), reading(slice(8, 1))));
  EXPECT(!mustWait(writing(slice(8, 8)), reading(slice(7, 1))));
}

TEST(HazardTracker, BuffersOverTheSameMemoryConflict) {
  int space = 0;
  const auto at = [&](uint64_t begin, uint64_t length) {
    return REQUIRE(
        Tensor::over(std::make_shared<PlanBuffer>(length, begin, &space), DType::u8, REQUIRE(Shape::make({length}))));
  };
  EXPECT(mustWait(writing(at(64, 64)), reading(at(64, 64))));
  EXPECT(mustWait(writing(at(64, 64)), reading(at(0, 65))));
  EXPECT(!mustWait(writing(at(64, 64)), reading(at(0, 64))));
  EXPECT(!mustWait(writing(at(64, 64)), reading(at(128, 64))));
}

TEST(HazardTracker, OnlyDeclaredBytesCount) {
  const Tensor whole = planTensor(DType::u8, {64});
  Binding evens = writing(whole);
  evens.writes = {{.offset = 0, .rowBytes = 8, .rowStride = 16, .rows = 4}};
  Binding odds = writing(whole);
  odds.writes = {{.offset = 8, .rowBytes = 8, .rowStride = 16, .rows = 4}};
  EXPECT(!mustWait(evens, odds));
  EXPECT(mustWait(evens, evens));
  odds.writes[0].rowBytes = 9;
  EXPECT(mustWait(evens, odds));
  Binding none = writing(whole);
  none.writes.clear();
  EXPECT(!mustWait(none, writing(whole)));
}

TEST(HazardTracker, RegionsAreRelativeToTheirBinding) {
  const Tensor whole = planTensor(DType::u8, {64});
  const Region head{.offset = 0, .rowBytes = 8, .rowStride = 8, .rows = 1};
  Binding first = writing(REQUIRE(whole.slice(16, 16)));
  first.writes = {head};
  EXPECT(mustWait(first, reading(REQUIRE(whole.slice(16, 1)))));
  EXPECT(!mustWait(first, reading(REQUIRE(whole.slice(24, 8)))));
  EXPECT(!mustWait(first, reading(REQUIRE(whole.slice(0, 16)))));
}

TEST(HazardTracker, RemembersAccessesSinceTheLastClear) {
  const Tensor a = planTensor(DType::f32, {8});
  const Tensor b = planTensor(DType::f32, {8});
  TouchedIndex index;
  for (const Touched& touched : touchedBy({writing(a), writing(b)})) index.add(touched);
  EXPECT(index.conflicts(touchedBy({reading(a)})));
  EXPECT(index.conflicts(touchedBy({reading(b)})));
  index.clear();
  EXPECT(!index.conflicts(touchedBy({reading(a)})));
  EXPECT(!index.conflicts(std::span<const Touched>()));
}

TEST(HazardTracker, AnyBindingOfADispatchCanConflict) {
  const Tensor a = planTensor(DType::f32, {8});
  const Tensor b = planTensor(DType::f32, {8});
  TouchedIndex index;
  for (const Touched& touched : touchedBy({writing(b)})) index.add(touched);
  EXPECT(index.conflicts(touchedBy({reading(a), reading(b)})));
}

TEST(HazardTracker, OverlapAgreesWithSetsOfBytes) {
  Seeded random(21);
  for (int i = 0; i < 40'000; ++i) {
    Region a = drawnRegion(random);
    Region b = drawnRegion(random);
    expectModel(a, b);
    b.rowStride = a.rowStride;
    expectModel(a, b);
    a.rows = 1;
    expectModel(a, b);
    expectModel(b, a);
  }
}

TEST(HazardTracker, OverlapIsIndependentOfAddresses) {
  Seeded random(22);
  constexpr uint64_t kFar = (uint64_t{1} << 63) - 1000;
  for (int i = 0; i < 20'000; ++i) {
    Region a = drawnRegion(random);
    Region b = drawnRegion(random);
    if (i % 2) b.rowStride = a.rowStride;
    const bool near = overlap(a, b);
    a.offset += kFar;
    b.offset += kFar;
    if (overlap(a, b) != near) fail(__FILE__, __LINE__, fmt::format("{} and {}", text(a), text(b)));
  }
}

TEST(HazardTracker, OverlapIsSymmetric) {
  Seeded random(23);
  for (int i = 0; i < 20'000; ++i) {
    const Region a = drawnRegion(random);
    const Region b = drawnRegion(random);
    if (overlap(a, b) != overlap(b, a)) fail(__FILE__, __LINE__, fmt::format("{} and {}", text(a), text(b)));
  }
}

TEST(HazardTracker, DistinguishesWideInterleavedRows) {
  // Two tokens of a head-major cache: equal strides, adjacent rows, far more rows than fit in 32 bits.
  const Region first{.offset = 0, .rowBytes = 256, .rowStride = 1 << 20, .rows = uint64_t{1} << 40};
  Region second = first;
  second.offset = 256;
  EXPECT(!overlap(first, second));
  second.offset = 255;
  EXPECT(overlap(first, second));
  second.offset = (uint64_t{1} << 20) - 255;
  EXPECT(overlap(first, second));
}

TEST(HazardTracker, ManyRepeatedRowsStillConflict) {
  // These rows have 2^64 bytes, a count that overflows 64 bits.
  const Region repeated{.offset = 4, .rowBytes = 2, .rowStride = 0, .rows = uint64_t{1} << 63};
  EXPECT(overlap(repeated, {.offset = 5, .rowBytes = 1, .rowStride = 1, .rows = 1}));
  EXPECT(!overlap(repeated, {.offset = 6, .rowBytes = 1, .rowStride = 1, .rows = 1}));
  Binding binding = writing(planTensor(DType::u8, {16}));
  const Binding reader =
      Binding{.index = 0, .buffer = binding.buffer, .offset = 0, .length = 16, .reads = binding.writes, .writes = {}};
  binding.writes = {repeated};
  EXPECT(mustWait(binding, reader));
}

}  // namespace mnk::test
