#include "MLXNativeKernels/Tensor.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/Golden.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"
#include "Support/Bytes.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max(), kMaxElements = (uint64_t{1} << 61) - 1;
constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::u8, DType::u16, DType::u32, DType::i32};

Shape shape(std::initializer_list<uint64_t> extents) {
  return REQUIRE(Shape::make(extents));
}

// Bytes 0, 1, 2 … so that the bytes a tensor reads identify its offset.
Tensor counting(const std::shared_ptr<FakeDevice>& device, DType dtype, const Shape& shape) {
  const Tensor tensor = REQUIRE(Tensor::zeros(device, dtype, shape));
  std::vector<std::byte> bytes(tensor.byteCount());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i);
  REQUIRE(tensor.write(bytes));
  return tensor;
}

constexpr std::string_view kMisaligned = "the tensor does not start at a multiple of its element size";
constexpr std::string_view kDoesNotFit = "the tensor does not fit in its buffer";

// What a tensor is made of, besides its buffer.
struct Layout {
  DType dtype = DType::u8;
  std::vector<uint64_t> extents;
  uint64_t offset = 0;

  uint64_t elementCount() const {
    return std::accumulate(extents.begin(), extents.end(), uint64_t{1}, std::multiplies<>());
  }
  uint64_t byteCount() const { return elementCount() * byteSize(dtype); }
};

// "begin..end" of consecutive bytes.
std::string byteRange(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  if (bytes.empty()) return "nothing";
  for (size_t i = 1; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte(int(bytes[i - 1]) + 1)) return "not consecutive";
  }
  return fmt::format("{}..{}", int(bytes.front()), int(bytes.back()));
}

}  // namespace

TEST(Tensor, DTypesHaveSizesAndNames) {
  constexpr uint64_t kSizes[] = {4, 2, 2, 1, 2, 4, 4};
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "u8", "u16", "u32", "i32"};
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    EXPECT_EQ(byteSize(kDTypes[i]), kSizes[i]);
    EXPECT_EQ(name(kDTypes[i]), kNames[i]);
  }
  EXPECT_EQ(byteSize(static_cast<DType>(7)), 0u);
  EXPECT_EQ(name(static_cast<DType>(7)), "unknown dtype");
}

// Slices of slices, in other shapes and dtypes, whose numbers are often at the border of what is allowed.
TEST(Tensor, ViewsAgreeWithTheirDefinition) {
  Seeded random(30);
  constexpr uint64_t kBytes = 128;
  const auto device = FakeDevice::make();
  Tensor tensor = counting(device, DType::u8, shape({kBytes}));
  const auto buffer = tensor.buffer();
  Layout layout{.dtype = DType::u8, .extents = {kBytes}, .offset = 0};
  std::map<std::string_view, int> outcomes;
  for (int step = 0; step < 40'000; ++step) {
    const std::string_view call = step % 8 == 0 ? "over" : oneOf<std::string_view>(random, {"slice", "shape", "dtype"});
    Layout next = layout;
    Result<Tensor> got = Error{};
    std::string_view error;  // empty if it is allowed
    if (call == "over") {
      next.dtype = kDTypes[random.below(std::size(kDTypes))];
      const uint64_t size = byteSize(next.dtype), elements = random.below(kBytes / size + 2);
      next.extents = {coin(random, 1, 8) ? edge(random, {kBytes / size}) : elements};
      next.offset = coin(random, 1, 8) ? edge(random, {kBytes}) : random.below(kBytes) / 4 * 4;
      const auto made = Shape::make(next.extents);
      if (!made) continue;
      got = Tensor::over(buffer, next.dtype, *made, next.offset);
      if (next.offset % size != 0) error = kMisaligned;
      if (next.offset > kBytes || next.byteCount() > kBytes - next.offset) error = kDoesNotFit;
    } else if (call == "slice") {
      const uint64_t extent = layout.extents.empty() ? 0 : layout.extents[0], begin = random.below(extent + 1);
      const uint64_t from = coin(random, 1, 8) ? edge(random, {extent}) : begin;
      const uint64_t count = coin(random, 1, 8) ? edge(random, {extent - begin}) : random.below(extent - begin + 1);
      got = tensor.slice(from, count);
      if (layout.extents.empty() || from > extent || count > extent - from) {
        error = "the slice lies outside the tensor";
      } else {
        next.offset += extent == 0 ? 0 : from * (layout.byteCount() / extent);
        next.extents[0] = count;
      }
    } else if (call == "shape") {
      next.extents = {layout.elementCount()};
      if (coin(random, 1, 8)) next.extents.push_back(random.below(3));
      for (const uint64_t factor : {2, 3}) {
        if (next.extents[0] % factor != 0 || !coin(random, 1, 2)) continue;
        next.extents[0] /= factor;
        next.extents.push_back(factor);
      }
      if (next.elementCount() == 1 && coin(random, 1, 2)) next.extents.clear();
      got = tensor.reshaped(REQUIRE(Shape::make(next.extents)));
      if (next.elementCount() != layout.elementCount()) error = "the new shape holds another number of elements";
    } else {
      next.dtype = kDTypes[random.below(std::size(kDTypes))];
      got = tensor.viewedAs(next.dtype);
      const uint64_t size = byteSize(next.dtype);
      if (next.offset % size != 0) error = kMisaligned;
      const uint64_t last = layout.extents.empty() ? 0 : layout.extents.back() * byteSize(layout.dtype);
      if (layout.extents.empty() || last % size != 0) error = "the last axis does not divide into the new dtype";
      if (!layout.extents.empty()) next.extents.back() = last / size;
    }
    ++outcomes[error.empty() ? call : error];
    EXPECT_EQ(got ? "" : got.error().what, error);
    if (!got) continue;
    tensor = *got;
    layout = next;
    EXPECT(tensor.dtype() == layout.dtype && tensor.shape() == REQUIRE(Shape::make(layout.extents)));
    EXPECT_EQ(tensor.byteOffset(), layout.offset);
    EXPECT_EQ(tensor.range().begin, buffer->range().begin + layout.offset);
    EXPECT_EQ(tensor.range().end - tensor.range().begin, layout.byteCount());
    EXPECT_EQ(byteRange(tensor), layout.byteCount() == 0
                                     ? "nothing"
                                     : fmt::format("{}..{}", layout.offset, layout.offset + layout.byteCount() - 1));
  }
  EXPECT_EQ(outcomes.size(), 9u);  // four calls and five errors
  for (const auto& [outcome, count] : outcomes) EXPECT(count > 100);
}

TEST(Tensor, RefusesWhatItCannotBe) {
  const auto buffer = std::make_shared<PlanBuffer>(64);
  const Tensor tensor = REQUIRE(Tensor::over(buffer, DType::u16, shape({4, 3}))), none;
  constexpr auto kUnknown = static_cast<DType>(99);
  RefusedCalls no;
  no(tensor.slice(3, 2));
  no(tensor.reshaped(shape({5, 5})));
  no(tensor.viewedAs(DType::f32));
  no(tensor.viewedAs(kUnknown));
  no(Tensor::over(buffer, DType::f32, shape({16}), 4));
  no(Tensor::over(buffer, DType::f32, shape({2}), 6));
  no(Tensor::over(buffer, kUnknown, Shape()));
  // Widening an empty view cannot overflow.
  no(REQUIRE(Tensor::over(buffer, DType::f32, shape({0, uint64_t{1} << 60}))).viewedAs(DType::u8));
  std::vector<std::byte> bytes(4);
  EXPECT(!none && !none.range().overlaps(none.range()));
  no(none.slice(0, 1));
  no(none.reshaped(Shape()));
  no(none.viewedAs(DType::u8));
  no(none.read(bytes));
  no(none.write(bytes));
  no(Tensor::over(nullptr, DType::f32, Shape()));
  const auto device = FakeDevice::make();
  no(Tensor::zeros(nullptr, DType::f32, Shape()));
  no(Tensor::zeros(device, kUnknown, Shape()));
  device->failAt(FakeDevice::Call::makeBuffer);
  no(Tensor::zeros(device, DType::f32, Shape()));
}

TEST(Tensor, StartsAtAMultipleOfItsElementSize) {
  const auto aligned = std::make_shared<PlanBuffer>(64);
  const auto odd = std::make_shared<PlanBuffer>(64, 2);
  for (const DType dtype : kDTypes) {
    for (uint64_t offset = 0; offset < 8; ++offset) {
      Context context(fmt::format("{} at {}", name(dtype), offset));
      EXPECT_EQ(bool(Tensor::over(aligned, dtype, shape({2}), offset)), offset % byteSize(dtype) == 0);
    }
    EXPECT_EQ(bool(Tensor::over(odd, dtype, shape({2}))), byteSize(dtype) <= 2);
  }
}

TEST(Tensor, CopiesMustCoverItExactly) {
  const auto device = FakeDevice::make();
  const Tensor tensor = REQUIRE(counting(device, DType::f32, shape({4})).slice(1, 2));
  RefusedCalls no;
  for (const size_t size : {0u, 7u, 9u, 16u}) {
    std::vector<std::byte> bytes(size, std::byte{0xee});
    no(tensor.read(bytes));
    no(tensor.write(bytes));
  }
  EXPECT_EQ(byteRange(tensor), "4..11");
}

TEST(Tensor, CopiesShareMemoryAndSlicesLeaveTheirNeighborsAlone) {
  const auto device = FakeDevice::make();
  const Tensor whole = counting(device, DType::u8, shape({6}));
  const Tensor copy = whole;
  const std::vector<std::byte> bytes(1, std::byte{77});
  REQUIRE(REQUIRE(copy.slice(2, 1)).write(bytes));
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(0, 2))), "0..1");
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(2, 1))), "77..77");
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(3, 3))), "3..5");
}

TEST(Buffer, RangesOverlapOnlyWithinOneSpace) {
  const MemoryRange range{.space = nullptr, .begin = 10, .end = 20};
  EXPECT(range.overlaps({.space = nullptr, .begin = 19, .end = 30}));
  EXPECT(range.overlaps({.space = nullptr, .begin = 0, .end = 11}));
  EXPECT(range.overlaps({.space = nullptr, .begin = 12, .end = 13}));
  EXPECT(!range.overlaps({.space = nullptr, .begin = 20, .end = 30}));
  EXPECT(!range.overlaps({.space = nullptr, .begin = 0, .end = 10}));
  EXPECT(!range.overlaps({.space = &range, .begin = 10, .end = 20}));
  const MemoryRange empty{.begin = 12, .end = 12};
  EXPECT(!range.overlaps(empty) && !empty.overlaps(range));
}

TEST(Buffer, RefusesRangesOutsideIt) {
  const auto device = FakeDevice::make();
  const auto buffer = REQUIRE(device->makeBuffer(8));
  std::array<std::byte, 9> bytes{};
  bytes.fill(std::byte{9});
  const std::span<std::byte> all(bytes);
  RefusedCalls no;
  const std::pair<uint64_t, size_t> outside[] = {{0, 9}, {1, 8}, {8, 1}, {9, 0}, {kMax, 1}, {kMax, 0}, {kMax - 3, 8}};
  for (const auto& [offset, count] : outside) {
    no(buffer->read(offset, all.first(count)));
    no(buffer->write(offset, all.first(count)));
  }
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{9}), 9);
  REQUIRE(buffer->read(0, all.first(8)));
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}), 8);
  // Copies of nothing at the end are allowed.
  for (const uint64_t length : {0u, 8u}) {
    const auto other = REQUIRE(device->makeBuffer(length));
    REQUIRE(other->read(length, {}));
    REQUIRE(other->write(length, {}));
  }
}

TEST(Buffer, WithoutContentsReportsAnError) {
  const auto buffer = std::make_shared<PlanBuffer>(8);
  std::array<std::byte, 4> bytes{};
  RefusedCalls no;
  no(buffer->read(0, bytes));
  no(buffer->write(0, bytes));
  no(buffer->read(5, bytes));
}

TEST(Shape, ReportsRankExtentsAndElements) {
  const Shape shape = REQUIRE(Shape::make({6, 2, 8}));
  EXPECT_EQ(shape.rank(), 3u);
  EXPECT_EQ(shape.extents().size(), 3u);
  for (const auto& [axis, extent] : {std::pair(0u, 6u), {2u, 8u}, {3u, 0u}, {UINT32_MAX, 0u}}) {
    EXPECT_EQ(shape[axis], extent);
  }
  EXPECT_EQ(shape.elementCount(), 96u);
  EXPECT_EQ(shape.text(), "[6, 2, 8]");
  EXPECT_EQ(Shape().rank(), 0u);
  EXPECT_EQ(Shape().elementCount(), 1u);
  EXPECT_EQ(Shape().text(), "[]");
}

TEST(Shape, ComparesExtentsAndRank) {
  const std::vector<uint64_t> shapes[] = {{}, {0}, {2, 3}, {3, 2}, {2, 3, 1}};
  for (const auto& one : shapes) {
    for (const auto& other : shapes) EXPECT_EQ(REQUIRE(Shape::make(one)) == REQUIRE(Shape::make(other)), one == other);
  }
  EXPECT(REQUIRE(Shape::make({})) == Shape());
}

TEST(Shape, HasAtMostEightExtents) {
  EXPECT_EQ(REQUIRE(Shape::make({1, 1, 1, 1, 1, 1, 1, 2})).elementCount(), 2u);
  RefusedCalls no;
  no(Shape::make({1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Shape, AnyZeroExtentMakesItEmpty) {
  for (const std::vector<uint64_t>& extents : {std::vector<uint64_t>{0}, {0, 5}, {5, 0, 7}, {kMaxElements, 0}}) {
    EXPECT_EQ(REQUIRE(Shape::make(extents)).elementCount(), 0u);
  }
}

TEST(Shape, RefusesMoreElementsThanSizesCanHold) {
  EXPECT_EQ(REQUIRE(Shape::make({kMaxElements})).elementCount(), kMaxElements);
  const std::vector<uint64_t> tooMany[] = {
      {kMaxElements + 1},
      {kMax},
      {kMax, kMax},
      {uint64_t{1} << 32, uint64_t{1} << 32},
      {uint64_t{1} << 31, 1 << 30},
      {2, kMax / 2},
      {3, kMax / 3 + 1},
      // A zero must not hide extents that overflow in another order.
      {0, kMax},
      {kMax, 0},
      {uint64_t{1} << 40, uint64_t{1} << 40, 0},
  };
  RefusedCalls no;
  for (const auto& extents : tooMany) no(Shape::make(extents));
}

TEST(Shape, CheckedMathStopsAt64Bits) {
  EXPECT(checkedAdd(kMax - 1, 1) == kMax);
  EXPECT(!checkedAdd(kMax, 1));
  EXPECT(checkedMultiply(kMax / 3, 3) == kMax / 3 * 3);
  EXPECT(!checkedMultiply(kMax / 2 + 1, 2));
  EXPECT(fits(0, 0, 0));
  EXPECT(fits(3, 2, 5));
  EXPECT(!fits(3, 3, 5));
  EXPECT(!fits(6, 0, 5));
  EXPECT(!fits(kMax, 2, 5));
  EXPECT(!fits(2, kMax, 5));
  EXPECT(fits(1, kMax - 1, kMax));
}

}  // namespace mnk::test
