#include "MLXNativeKernels/Tensor.hpp"

#include <fmt/ranges.h>

#include <limits>
#include <vector>

#include "Harness/Check.hpp"
#include "Support/Bytes.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMaxElements = (uint64_t{1} << 61) - 1;

}  // namespace

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
  EXPECT_ERROR(Shape::make({1, 1, 1, 1, 1, 1, 1, 1, 1}), {.op = "Shape",
                                                          .what = "too many extents",
                                                          .got = "9 extents",
                                                          .expected = "at most 8",
                                                          .fix = "Join neighboring axes."});
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
      {kMaxNumber},
      {kMaxNumber, kMaxNumber},
      {uint64_t{1} << 32, uint64_t{1} << 32},
      {uint64_t{1} << 31, 1 << 30},
      {2, kMaxNumber / 2},
      {3, kMaxNumber / 3 + 1},
      // A zero must not hide extents that overflow in another order.
      {0, kMaxNumber},
      {kMaxNumber, 0},
      {uint64_t{1} << 40, uint64_t{1} << 40, 0},
  };
  for (const auto& extents : tooMany) {
    Context context(fmt::format("[{}]", fmt::join(extents, ", ")));
    EXPECT_ERROR(Shape::make(extents), {.op = "Shape",
                                        .what = "more elements than 64-bit sizes can count",
                                        .got = "[",
                                        .expected = "fewer than 2^61 elements",
                                        .fix = "Pass smaller extents."});
  }
}

TEST(Shape, CheckedMathStopsAt64Bits) {
  EXPECT(checkedAdd(kMaxNumber - 1, 1) == kMaxNumber);
  EXPECT(!checkedAdd(kMaxNumber, 1));
  EXPECT(checkedMultiply(kMaxNumber / 3, 3) == kMaxNumber / 3 * 3);
  EXPECT(!checkedMultiply(kMaxNumber / 2 + 1, 2));
  EXPECT(fits(0, 0, 0));
  EXPECT(fits(3, 2, 5));
  EXPECT(!fits(3, 3, 5));
  EXPECT(!fits(6, 0, 5));
  EXPECT(!fits(kMaxNumber, 2, 5));
  EXPECT(!fits(2, kMaxNumber, 5));
  EXPECT(fits(1, kMaxNumber - 1, kMaxNumber));
}

}  // namespace mnk::test
