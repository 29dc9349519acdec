#include "MLXNativeKernels/Tensor.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::test {

namespace {

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

TEST(Tensor, FreshMemoryIsZero) {
  const auto device = FakeDevice::make();
  for (const DType dtype : kDTypes) {
    const Tensor tensor = REQUIRE(Tensor::zeros(device, dtype, shape({3, 5})));
    std::vector<std::byte> bytes(15 * byteSize(dtype), std::byte{0xff});
    REQUIRE(tensor.read(bytes));
    EXPECT(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  }
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

TEST(Tensor, ErrorsOfViewsSayWhatIsAllowed) {
  const auto buffer = std::make_shared<PlanBuffer>(64);
  const Tensor tensor = REQUIRE(Tensor::over(buffer, DType::u16, shape({4, 3})));
  EXPECT_ERROR(tensor.slice(3, 2), {.op = "Tensor",
                                    .what = "the slice lies outside the tensor",
                                    .got = "begin 3, count 2",
                                    .expected = "a range of the outermost axis of [4, 3]",
                                    .fix = "Pass a begin and a count inside the outermost axis."});
  EXPECT_ERROR(tensor.reshaped(shape({5, 5})), {.op = "Tensor",
                                                .what = "another number of elements",
                                                .got = "[5, 5]",
                                                .expected = "12 elements, as [4, 3]",
                                                .fix = "same number of elements"});
  EXPECT_ERROR(tensor.viewedAs(DType::f32), {.op = "Tensor",
                                             .what = "the last axis does not divide into the new dtype",
                                             .got = "6 bytes in the last axis of u16 [4, 3]",
                                             .expected = "a multiple of 4 bytes for f32",
                                             .fix = "Reshape first"});
  EXPECT_ERROR(tensor.viewedAs(static_cast<DType>(99)), {.what = "the dtype is unknown", .got = "number 99"});
  EXPECT_ERROR(Tensor::over(buffer, DType::f32, shape({16}), 4), {.op = "Tensor",
                                                                  .what = "the tensor does not fit in its buffer",
                                                                  .got = "f32 [16] (64 bytes) at byte 4",
                                                                  .expected = "at most 64 bytes",
                                                                  .fix = "Make the buffer larger"});
  // Widening an empty view cannot overflow.
  const Tensor empty = REQUIRE(Tensor::over(buffer, DType::f32, shape({0, uint64_t{1} << 60})));
  EXPECT_ERROR(empty.viewedAs(DType::u8), {.op = "Shape", .what = "more elements than 64-bit sizes can count"});
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
    EXPECT_ERROR(tensor.read(bytes), (expected));
    EXPECT_ERROR(tensor.write(bytes), (expected));
  }
  EXPECT_EQ(byteRange(tensor), "4..11");
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
  EXPECT_ERROR(none.slice(0, 1), (expected));
  EXPECT_ERROR(none.reshaped(Shape()), (expected));
  EXPECT_ERROR(none.viewedAs(DType::u8), (expected));
  EXPECT_ERROR(none.read(bytes), (expected));
  EXPECT_ERROR(none.write(bytes), (expected));
  EXPECT_ERROR(Tensor::over(nullptr, DType::f32, Shape()), (expected));
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
  EXPECT_ERROR(Tensor::zeros(device, static_cast<DType>(1234), Shape()), (unknown));
  EXPECT_ERROR(Tensor::over(std::make_shared<PlanBuffer>(4), static_cast<DType>(1234), Shape()), (unknown));
  device->failAt(FakeDevice::Call::makeBuffer);
  EXPECT_ERROR(Tensor::zeros(device, DType::f32, Shape()), {.code = ErrorCode::deviceFault, .op = "FakeDevice"});
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

}  // namespace mnk::test
