#include "MLXNativeKernels/Tensor.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kMaxBytes = std::numeric_limits<uint64_t>::max();
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

TEST(Tensor, FreshMemoryIsZero) {
  const auto device = FakeDevice::make();
  for (const DType dtype : kDTypes) {
    const Tensor tensor = REQUIRE(Tensor::zeros(device, dtype, shape({3, 5})));
    std::vector<std::byte> bytes(15 * byteSize(dtype), std::byte{0xff});
    REQUIRE(tensor.read(bytes));
    EXPECT(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(Tensor, SlicesAreRelativeToTheirParent) {
  const auto device = FakeDevice::make();
  const Tensor whole = counting(device, DType::u16, shape({8, 2, 3}));
  EXPECT_EQ(byteRange(whole), "0..95");
  const Tensor middle = REQUIRE(whole.slice(2, 5));
  EXPECT_EQ(byteRange(middle), "24..83");
  EXPECT_EQ(middle.shape().text(), "[5, 2, 3]");
  const Tensor inner = REQUIRE(middle.slice(1, 2));
  EXPECT_EQ(byteRange(inner), "36..59");
  EXPECT_EQ(inner.byteOffset(), 36u);
  EXPECT_EQ(byteRange(REQUIRE(inner.slice(1, 1))), "48..59");
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(8, 0))), "nothing");
  EXPECT_EQ(REQUIRE(inner.slice(2, 0)).byteOffset(), 60u);
}

TEST(Tensor, ViewsKeepTheOffset) {
  const auto device = FakeDevice::make();
  const auto buffer = counting(device, DType::u8, shape({128})).buffer();
  const Tensor based = REQUIRE(Tensor::over(buffer, DType::f32, shape({4, 4}), 16));
  EXPECT_EQ(byteRange(based), "16..79");
  const Tensor sliced = REQUIRE(based.slice(1, 2));
  EXPECT_EQ(byteRange(sliced), "32..63");
  const Tensor flat = REQUIRE(sliced.reshaped(shape({8})));
  EXPECT_EQ(byteRange(flat), "32..63");
  const Tensor slicedAgain = REQUIRE(flat.slice(3, 4));
  EXPECT_EQ(byteRange(slicedAgain), "44..59");
  const Tensor halves = REQUIRE(slicedAgain.viewedAs(DType::f16));
  EXPECT_EQ(byteRange(halves), "44..59");
  EXPECT_EQ(byteRange(REQUIRE(halves.slice(7, 1))), "58..59");
  EXPECT_EQ(halves.range().begin, buffer->range().begin + 44);
  EXPECT_EQ(halves.range().end, buffer->range().begin + 60);
}

TEST(Tensor, SlicesStayInsideTheirParent) {
  const auto device = FakeDevice::make();
  const Tensor parent = REQUIRE(counting(device, DType::f32, shape({16, 2})).slice(4, 4));
  struct Case {
    uint64_t begin, count;
  };
  for (const Case& one : {Case{0, 5},
                          {4, 1},
                          {5, 0},
                          {3, 2},
                          {kMaxBytes, 1},
                          {1, kMaxBytes},
                          {kMaxBytes, kMaxBytes},
                          {kMaxBytes - 1, 2}}) {
    Context context(fmt::format("slice({}, {})", one.begin, one.count));
    EXPECT_ERROR(parent.slice(one.begin, one.count), {.op = "Tensor",
                                                      .what = "the slice lies outside the tensor",
                                                      .got = "begin",
                                                      .expected = "a range of the outermost axis of [4, 2]",
                                                      .fix = "Pass a begin and a count inside the outermost axis."});
  }
  EXPECT_ERROR(REQUIRE(Tensor::zeros(device, DType::f32, Shape())).slice(0, 1), {.what = "outside the tensor"});
}

TEST(Tensor, SlicesOfEmptyTensorsAreEmpty) {
  const auto device = FakeDevice::make();
  const Tensor empty = REQUIRE(Tensor::zeros(device, DType::f32, shape({4, 0, 3})));
  EXPECT_EQ(empty.byteCount(), 0u);
  const Tensor slice = REQUIRE(empty.slice(3, 1));
  EXPECT_EQ(slice.byteOffset(), 0u);
  EXPECT_EQ(slice.shape().text(), "[1, 0, 3]");
  EXPECT(bool(slice.read({})));
  EXPECT(bool(slice.write({})));
}

TEST(Tensor, ReshapingKeepsTheElementCount) {
  const auto device = FakeDevice::make();
  const Tensor tensor = counting(device, DType::u8, shape({4, 6}));
  EXPECT_EQ(byteRange(REQUIRE(tensor.reshaped(shape({2, 3, 4})))), "0..23");
  EXPECT_ERROR(tensor.reshaped(shape({5, 5})), {.op = "Tensor",
                                                .what = "another number of elements",
                                                .got = "[5, 5]",
                                                .expected = "24 elements, as [4, 6]",
                                                .fix = "same number of elements"});
  EXPECT_ERROR(tensor.reshaped(shape({4, 0})), {.what = "another number of elements"});
  EXPECT_EQ(REQUIRE(REQUIRE(tensor.slice(0, 0)).reshaped(shape({0, 7}))).byteCount(), 0u);
}

TEST(Tensor, ViewingAsAnotherDTypeKeepsTheBytes) {
  const auto device = FakeDevice::make();
  const Tensor floats = counting(device, DType::f32, shape({2, 3}));
  const Tensor bytes = REQUIRE(floats.viewedAs(DType::u8));
  EXPECT_EQ(bytes.shape().text(), "[2, 12]");
  EXPECT_EQ(byteRange(bytes), "0..23");
  EXPECT_EQ(REQUIRE(bytes.viewedAs(DType::f32)).shape().text(), "[2, 3]");
  EXPECT_EQ(REQUIRE(floats.viewedAs(DType::bf16)).shape().text(), "[2, 6]");
  EXPECT_ERROR(REQUIRE(Tensor::zeros(device, DType::u16, shape({4, 3}))).viewedAs(DType::f32),
               {.op = "Tensor",
                .what = "the last axis does not divide into the new dtype",
                .got = "6 bytes in the last axis of u16 [4, 3]",
                .expected = "a multiple of 4 bytes for f32",
                .fix = "Reshape first"});
  EXPECT_ERROR(REQUIRE(Tensor::zeros(device, DType::f32, Shape())).viewedAs(DType::u8), {.what = "last axis"});
  EXPECT_ERROR(floats.viewedAs(static_cast<DType>(99)), {.what = "the dtype is unknown", .got = "number 99"});
  const Tensor odd = REQUIRE(REQUIRE(Tensor::zeros(device, DType::u16, shape({9, 2}))).reshaped(shape({18})));
  EXPECT_ERROR(REQUIRE(odd.slice(1, 4)).viewedAs(DType::f32), {.what = "multiple of its element size"});
}

TEST(Tensor, WideningAnEmptyViewCannotOverflow) {
  const auto buffer = std::make_shared<PlanBuffer>(0);
  const Tensor empty = REQUIRE(Tensor::over(buffer, DType::f32, shape({0, uint64_t{1} << 60})));
  EXPECT_ERROR(empty.viewedAs(DType::u8), {.op = "Shape", .what = "more elements than 64-bit sizes can count"});
}

TEST(Tensor, MustFitInItsBuffer) {
  const auto buffer = std::make_shared<PlanBuffer>(64);
  EXPECT(bool(Tensor::over(buffer, DType::f32, shape({16}))));
  EXPECT(bool(Tensor::over(buffer, DType::f32, shape({0}), 64)));
  struct Case {
    uint64_t elements, offset;
  };
  for (const Case& one : {Case{17, 0},
                          {16, 4},
                          {1, 64},
                          {0, 68},
                          {4, kMaxBytes - 15},
                          {1, kMaxBytes - 3},
                          {(uint64_t{1} << 61) - 1, 0},
                          {(uint64_t{1} << 61) - 1, kMaxBytes - 3}}) {
    Context context(fmt::format("{} elements at {}", one.elements, one.offset));
    EXPECT_ERROR(Tensor::over(buffer, DType::f32, shape({one.elements}), one.offset),
                 {.op = "Tensor",
                  .what = "the tensor does not fit in its buffer",
                  .got = "f32 [",
                  .expected = "at most 64 bytes",
                  .fix = "Make the buffer larger"});
  }
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
  EXPECT_ERROR(Tensor::over(aligned, DType::f32, shape({2}), 6),
               {.op = "Tensor",
                .what = "does not start at a multiple of its element size",
                .got = "f32 at byte 6",
                .expected = "a multiple of 4",
                .fix = "Align the memory and the offset"});
}

TEST(Tensor, CopiesMustCoverItExactly) {
  const auto device = FakeDevice::make();
  const Tensor tensor = REQUIRE(counting(device, DType::f32, shape({4})).slice(1, 2));
  for (const size_t size : {0u, 7u, 9u, 16u}) {
    std::vector<std::byte> bytes(size, std::byte{0xee});
    const ExpectedError expected{
        .op = "Tensor",
        .what = "the copy does not cover the tensor exactly",
        .got = size == 0 ? "0 bytes" : "bytes",
        .expected = "8 bytes",
        .fix = "Pass all elements of the shape in the tensor's dtype, or slice the tensor first."};
    const auto read = tensor.read(bytes);
    const auto written = tensor.write(bytes);
    expectError(__FILE__, __LINE__, "read", errorOf(read), expected);
    expectError(__FILE__, __LINE__, "write", errorOf(written), expected);
  }
  EXPECT_EQ(byteRange(tensor), "4..11");
}

TEST(Tensor, WritingASliceLeavesItsNeighborsAlone) {
  const auto device = FakeDevice::make();
  const Tensor whole = counting(device, DType::u8, shape({6}));
  const std::vector<std::byte> bytes(2, std::byte{77});
  REQUIRE(REQUIRE(whole.slice(2, 2)).write(bytes));
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(0, 2))), "0..1");
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(4, 2))), "4..5");
  EXPECT_EQ(byteRange(REQUIRE(whole.slice(2, 1))), "77..77");
}

TEST(Tensor, WithoutMemoryRefusesEverything) {
  const Tensor none;
  EXPECT(!none);
  std::vector<std::byte> bytes(4);
  const ExpectedError expected{.op = "Tensor",
                               .what = "the tensor has no memory",
                               .got = "an empty tensor",
                               .expected = "a tensor with memory",
                               .fix = "Tensor::zeros"};
  const auto refuse = [&](const char* call, const auto& result) {
    expectError(__FILE__, __LINE__, call, errorOf(result), expected);
  };
  refuse("slice", none.slice(0, 1));
  refuse("reshaped", none.reshaped(Shape()));
  refuse("viewedAs", none.viewedAs(DType::u8));
  refuse("read", none.read(bytes));
  refuse("write", none.write(bytes));
  refuse("over", Tensor::over(nullptr, DType::f32, Shape()));
  EXPECT(!none.range().overlaps(none.range()));
}

TEST(Tensor, ZerosNeedsDeviceDTypeAndMemory) {
  const auto device = FakeDevice::make();
  EXPECT_ERROR(
      Tensor::zeros(nullptr, DType::f32, Shape()),
      {.op = "Tensor", .what = "no device", .got = "a null device", .expected = "a device", .fix = "Make one"});
  const ExpectedError unknown{.op = "Tensor",
                              .what = "the dtype is unknown",
                              .got = "number 1234",
                              .expected = "one of f32, f16, bf16, u8, u16, u32, i32",
                              .fix = "by name"};
  const auto zeros = Tensor::zeros(device, static_cast<DType>(1234), Shape());
  const auto over = Tensor::over(std::make_shared<PlanBuffer>(4), static_cast<DType>(1234), Shape());
  expectError(__FILE__, __LINE__, "zeros", errorOf(zeros), unknown);
  expectError(__FILE__, __LINE__, "over", errorOf(over), unknown);
  device->failAt(FakeDevice::Call::makeBuffer);
  EXPECT_ERROR(Tensor::zeros(device, DType::f32, Shape()), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
}

TEST(Tensor, CopiesShareMemory) {
  const auto device = FakeDevice::make();
  const Tensor first = counting(device, DType::u8, shape({4}));
  const Tensor second = first;
  const std::vector<std::byte> bytes(4, std::byte{50});
  REQUIRE(REQUIRE(second.slice(0, 4)).write(bytes));
  EXPECT_EQ(byteRange(REQUIRE(first.slice(3, 1))), "50..50");
}

}  // namespace mnk::test
