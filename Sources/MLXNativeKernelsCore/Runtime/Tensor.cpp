#include <algorithm>
#include <cstring>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Tensor.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

std::string textOf(std::span<const uint64_t> extents) {
  std::string text;
  for (const uint64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

Error outside(uint64_t offset, uint64_t count, uint64_t length) {
  return invalidArgument(
      "Buffer", "the range lies outside the buffer", fmt::format("{} at offset {}", countText(count, "byte"), offset),
      fmt::format("a range inside {}", countText(length, "byte")), "Pass an offset and a length inside the buffer.");
}

Error notVisible() {
  return makeError(ErrorCode::unsupported, "Buffer", "the processor cannot touch this buffer",
                   "a buffer without contents", "memory shared with the processor",
                   "Copy through a buffer that the device made.");
}

constexpr std::string_view kTensorName = "Tensor";

bool isKnown(DType dtype) {
  return byteSize(dtype) != 0;
}

Error unknownDType(DType dtype) {
  return invalidArgument(kTensorName, "the dtype is unknown", fmt::format("number {}", static_cast<uint32_t>(dtype)),
                         "one of f32, f16, bf16, u8, u16, u32, i32", "Pass one of the dtypes by name.");
}

Error noMemory(std::string_view what) {
  return invalidArgument(kTensorName, "the tensor has no memory", "an empty tensor", "a tensor with memory",
                         fmt::format("Make it with Tensor::zeros or Tensor::over before you {} it.", what));
}

Error wrongCopySize(uint64_t got, uint64_t expected) {
  return invalidArgument(kTensorName, "the copy does not cover the tensor exactly", countText(got, "byte"),
                         countText(expected, "byte"),
                         "Pass all elements of the shape in the tensor's dtype, or slice the tensor first.");
}

Result<Shape> withExtent(const Shape& shape, uint32_t axis, uint64_t extent) {
  std::array<uint64_t, Shape::kMaxRank> extents{};
  std::copy(shape.extents().begin(), shape.extents().end(), extents.begin());
  extents[axis] = extent;
  return Shape::make(std::span<const uint64_t>(extents.data(), shape.rank()));
}

Result<Tensor> makeTensor(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape, bool isUndefined) {
  return guarded(kTensorName, [&]() -> Result<Tensor> {
    if (!device) {
      return invalidArgument(kTensorName, "there is no device to allocate on", "a null device", "a device",
                             "Make one with Device::makeDefault.");
    }
    if (!isKnown(dtype)) return unknownDType(dtype);
    const uint64_t bytes = shape.elementCount() * byteSize(dtype);
    MNK_TRY(auto buffer, isUndefined ? device->makeUndefinedBuffer(bytes) : device->makeBuffer(bytes));
    return Tensor::over(std::move(buffer), dtype, shape);
  });
}

}  // namespace

Result<Shape> Shape::make(std::span<const uint64_t> extents) {
  return guarded("Shape", [&]() -> Result<Shape> {
    if (extents.size() > kMaxRank) {
      return invalidArgument("Shape", "the shape has too many extents", countText(extents.size(), "extent"),
                             fmt::format("at most {}", kMaxRank), "Join neighboring axes.");
    }
    // Skips zero extents, so that overflow does not depend on the order of the axes.
    uint64_t count = 1;
    for (uint64_t extent : extents) {
      const auto product = checkedMultiply(count, extent == 0 ? 1 : extent);
      if (!product || *product > UINT64_MAX / 8) {
        return invalidArgument("Shape", "the shape holds more elements than 64-bit sizes can count", textOf(extents),
                               "fewer than 2^61 elements", "Pass smaller extents.");
      }
      count = *product;
    }
    Shape shape;
    shape.rank_ = static_cast<uint32_t>(extents.size());
    for (uint32_t axis = 0; axis < shape.rank_; ++axis) shape.extents_[axis] = extents[axis];
    return shape;
  });
}

Result<Shape> Shape::make(std::initializer_list<uint64_t> extents) {
  return make(std::span<const uint64_t>(extents.begin(), extents.size()));
}

uint64_t Shape::elementCount() const {
  uint64_t count = 1;
  for (uint64_t extent : extents()) count *= extent;
  return count;
}

std::string Shape::text() const {
  return textOf(extents());
}

template <typename Wait>
Result<void> Buffer::readAfter(Wait wait, uint64_t offset, std::span<std::byte> into) const {
  return guarded("Buffer", [&]() -> Result<void> {
    if (!fits(offset, into.size(), length_)) return outside(offset, into.size(), length_);
    if (into.empty()) return {};
    if (!MemoryTracker::isIdle()) MNK_TRY((MemoryTracker::shared().*wait)(part(offset, into.size())));
    return copyOut(offset, into);
  });
}

Result<void> Buffer::read(uint64_t offset, std::span<std::byte> into) const {
  return readAfter(&MemoryTracker::waitToRead, offset, into);
}

Result<void> Buffer::readCommitted(uint64_t offset, std::span<std::byte> into) const {
  return readAfter(&MemoryTracker::waitToReadCommitted, offset, into);
}

Result<void> Buffer::write(uint64_t offset, std::span<const std::byte> from) {
  return guarded("Buffer", [&]() -> Result<void> {
    if (!fits(offset, from.size(), length_)) return outside(offset, from.size(), length_);
    if (from.empty()) return {};
    if (MemoryTracker::isIdle()) return copyIn(offset, from);
    const MemoryRange bytes = part(offset, from.size());
    MNK_TRY(MemoryTracker::shared().waitToWrite(bytes));
    auto copied = copyIn(offset, from);
    if (copied) MemoryTracker::shared().written(bytes);
    return copied;
  });
}

MemoryRange Buffer::part(uint64_t offset, uint64_t bytes) const {
  const MemoryRange all = range();
  return {all.space, all.begin + offset, all.begin + offset + bytes};
}

Result<void> Buffer::copyOut(uint64_t offset, std::span<std::byte> into) const {
  const std::byte* bytes = const_cast<Buffer*>(this)->contents();
  if (!bytes) return notVisible();
  std::memcpy(into.data(), bytes + offset, into.size());
  return {};
}

Result<void> Buffer::copyIn(uint64_t offset, std::span<const std::byte> from) {
  std::byte* bytes = contents();
  if (!bytes) return notVisible();
  std::memcpy(bytes + offset, from.data(), from.size());
  return {};
}

Tensor::Tensor(const Tensor&) = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;
Tensor::~Tensor() = default;

Result<Tensor> Tensor::zeros(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape) {
  return makeTensor(device, dtype, shape, false);
}

Result<Tensor> Tensor::undefined(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape) {
  return makeTensor(device, dtype, shape, true);
}

Result<Tensor> Tensor::over(std::shared_ptr<Buffer> buffer, DType dtype, const Shape& shape, uint64_t byteOffset) {
  return guarded(kTensorName, [&]() -> Result<Tensor> {
    if (!buffer) return noMemory("use");
    if (!isKnown(dtype)) return unknownDType(dtype);
    const uint64_t bytes = shape.elementCount() * byteSize(dtype);
    if (!fits(byteOffset, bytes, buffer->length())) {
      return invalidArgument(
          kTensorName, "the tensor does not fit in its buffer",
          fmt::format("{} {} ({}) at byte {}", name(dtype), shape.text(), countText(bytes, "byte"), byteOffset),
          fmt::format("at most {}", countText(buffer->length(), "byte")),
          "Make the buffer larger, or the shape or the offset smaller.");
    }
    if (byteOffset % byteSize(dtype) != 0 || buffer->range().begin % byteSize(dtype) != 0) {
      return invalidArgument(
          kTensorName, "the tensor does not start at a multiple of its element size",
          fmt::format("{} at byte {}", name(dtype), buffer->range().begin % byteSize(dtype) + byteOffset),
          fmt::format("a multiple of {}", byteSize(dtype)), "Align the memory and the offset to the element size.");
    }
    Tensor tensor;
    tensor.buffer_ = std::move(buffer);
    tensor.dtype_ = dtype;
    tensor.shape_ = shape;
    tensor.byteOffset_ = byteOffset;
    return tensor;
  });
}

Result<Tensor> Tensor::slice(uint64_t begin, uint64_t count) const {
  return guarded(kTensorName, [&]() -> Result<Tensor> {
    if (!buffer_) return noMemory("slice");
    if (shape_.rank() == 0 || !fits(begin, count, shape_[0])) {
      return invalidArgument(kTensorName, "the slice lies outside the tensor",
                             fmt::format("begin {}, count {}", begin, count),
                             fmt::format("a range of the outermost axis of {}", shape_.text()),
                             "Pass a begin and a count inside the outermost axis.");
    }
    uint64_t inner = 1;
    for (uint32_t axis = 1; axis < shape_.rank(); ++axis) inner *= shape_[axis];
    MNK_TRY(auto shape, withExtent(shape_, 0, count));
    return over(buffer_, dtype_, shape, byteOffset_ + begin * inner * byteSize(dtype_));
  });
}

Result<Tensor> Tensor::reshaped(const Shape& shape) const {
  return guarded(kTensorName, [&]() -> Result<Tensor> {
    if (!buffer_) return noMemory("reshape");
    if (shape.elementCount() != shape_.elementCount()) {
      return invalidArgument(kTensorName, "the new shape holds another number of elements", shape.text(),
                             fmt::format("{} elements, as {}", shape_.elementCount(), shape_.text()),
                             "Pass a shape with the same number of elements, or slice first.");
    }
    return over(buffer_, dtype_, shape, byteOffset_);
  });
}

Result<Tensor> Tensor::viewedAs(DType dtype) const {
  return guarded(kTensorName, [&]() -> Result<Tensor> {
    if (!buffer_) return noMemory("view");
    if (!isKnown(dtype)) return unknownDType(dtype);
    const uint32_t rank = shape_.rank();
    const uint64_t lastBytes = (rank == 0 ? 1 : shape_[rank - 1]) * byteSize(dtype_);
    if (rank == 0 || lastBytes % byteSize(dtype) != 0) {
      return invalidArgument(kTensorName, "the last axis does not divide into the new dtype",
                             fmt::format("{} bytes in the last axis of {} {}", lastBytes, name(dtype_), shape_.text()),
                             fmt::format("a multiple of {} bytes for {}", byteSize(dtype), name(dtype)),
                             "Reshape first, or choose a narrower dtype.");
    }
    MNK_TRY(auto shape, withExtent(shape_, rank - 1, lastBytes / byteSize(dtype)));
    return over(buffer_, dtype, shape, byteOffset_);
  });
}

std::string Tensor::text() const {
  return buffer_ ? fmt::format("{} {}", name(dtype_), shape_.text()) : "a tensor without memory";
}

MemoryRange Tensor::range() const {
  if (!buffer_) return {};
  MemoryRange range = buffer_->range();
  range.begin += byteOffset_;
  range.end = range.begin + byteCount();
  return range;
}

Result<void> Tensor::read(std::span<std::byte> into) const {
  return guarded(kTensorName, [&]() -> Result<void> {
    if (!buffer_) return noMemory("read");
    if (into.size() != byteCount()) return wrongCopySize(into.size(), byteCount());
    return buffer_->read(byteOffset_, into);
  });
}

Result<void> Tensor::write(std::span<const std::byte> from) const {
  return guarded(kTensorName, [&]() -> Result<void> {
    if (!buffer_) return noMemory("write");
    if (from.size() != byteCount()) return wrongCopySize(from.size(), byteCount());
    return buffer_->write(byteOffset_, from);
  });
}

}  // namespace mnk
