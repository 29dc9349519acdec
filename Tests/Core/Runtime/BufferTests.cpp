#include "MLXNativeKernels/Tensor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

}  // namespace

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

TEST(Buffer, CopiesExactlyTheRequestedBytes) {
  const auto device = FakeDevice::make();
  const auto buffer = REQUIRE(device->makeBuffer(8));
  const std::array<std::byte, 3> in{std::byte{1}, std::byte{2}, std::byte{3}};
  REQUIRE(buffer->write(4, in));
  std::array<std::byte, 8> out{};
  REQUIRE(buffer->read(0, out));
  EXPECT(out == std::bit_cast<decltype(out)>(std::array<uint8_t, 8>{0, 0, 0, 0, 1, 2, 3, 0}));
}

TEST(Buffer, RefusesRangesOutsideIt) {
  const auto device = FakeDevice::make();
  const auto buffer = REQUIRE(device->makeBuffer(8));
  std::array<std::byte, 9> bytes{};
  bytes.fill(std::byte{9});
  const std::span<std::byte> all(bytes);
  struct Case {
    uint64_t offset;
    size_t count;
  };
  for (const Case& one : {Case{0, 9}, {1, 8}, {8, 1}, {9, 0}, {kMax, 1}, {kMax, 0}, {kMax - 3, 8}}) {
    Context context(fmt::format("{} bytes at {}", one.count, one.offset));
    const ExpectedError expected{.op = "Buffer",
                                 .what = "the range lies outside the buffer",
                                 .got = "at offset",
                                 .expected = "a range inside 8 bytes",
                                 .fix = "Pass an offset and a length inside the buffer."};
    EXPECT_ERROR(buffer->read(one.offset, all.first(one.count)), (expected));
    EXPECT_ERROR(buffer->write(one.offset, all.first(one.count)), (expected));
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
  const ExpectedError expected{.code = ErrorCode::unsupported,
                               .op = "Buffer",
                               .what = "the processor cannot touch this buffer",
                               .got = "without contents",
                               .expected = "memory shared with the processor",
                               .fix = "Copy through"};
  EXPECT_ERROR(buffer->read(0, bytes), (expected));
  EXPECT_ERROR(buffer->write(0, bytes), (expected));
  EXPECT_ERROR(buffer->read(5, bytes), {.what = "outside"});
}

}  // namespace mnk::test
