// A Tensor is a part of a buffer with a dtype and a shape, elements in row-major order without gaps.
// Copies share memory. A tensor always lies inside its buffer, at a multiple of its element size.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

constexpr uint64_t byteSize(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::u32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr bool isFloat(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// The extents of a tensor, outermost first. A shape holds at most eight extents and its element count
// always fits in 64 bits, so code that has a Shape multiplies without checking.
class Shape {
 public:
  static constexpr uint32_t kMaxRank = 8;

  Shape() = default;  // rank 0, one element
  static Result<Shape> make(std::span<const uint64_t> extents);
  static Result<Shape> make(std::initializer_list<uint64_t> extents);

  uint32_t rank() const { return rank_; }
  uint64_t operator[](uint32_t axis) const { return axis < rank_ ? extents_[axis] : 0; }
  uint64_t elementCount() const;
  std::span<const uint64_t> extents() const { return {extents_.data(), rank_}; }
  std::string text() const;  // "[6, 2, 8]"

  bool operator==(const Shape&) const = default;

 private:
  std::array<uint64_t, kMaxRank> extents_{};
  uint32_t rank_ = 0;
};

// Memory of a device. A buffer's bytes are zero when it is made, unless it was asked for as undefined, and its reads
// and writes are bounds-checked.
class Device;

// A range of memory. Two ranges can overlap only if they have the same space.
struct MemoryRange {
  const void* space = nullptr;  // an object that owns addresses; null is the host's address space
  uint64_t begin = 0;
  uint64_t end = 0;

  bool overlaps(const MemoryRange& other) const {
    return space == other.space && std::max(begin, other.begin) < std::min(end, other.end);
  }
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint64_t length() const { return length_; }

  // The device that made it; null for a buffer that only plans use.
  virtual std::shared_ptr<Device> device() const = 0;
  virtual bool isOf(const Device& owner) const { return device().get() == &owner; }
  // All of its bytes. Buffers that wrap the same memory report overlapping ranges.
  virtual MemoryRange range() const = 0;
  // Bytes that the processor can touch, or null if there are none. Nothing is checked: wait for submitted work before
  // they are used. Failures of work that was to write them are not reported, and writes here do not clear them.
  virtual std::byte* contents() = 0;
  // Whether its owner orders the work of several encoders on its bytes, as a cache does.
  bool isOrdered() const { return isOrdered_; }
  void setOrdered() { isOrdered_ = true; }

  // Copies between the processor and the buffer. They wait for work that was committed before the call and touches
  // these bytes: a read for work that writes them, a write for work that reads or writes them. A read fails if the work
  // that was to write the bytes failed, until they are written again. If waiting could never end, in a handler of
  // finished work or for a command buffer that the app has not committed, they fail with wouldDeadlock. They also fail
  // while an encoder that is not committed has recorded work on these bytes: a read if the work writes them, a write if
  // it reads or writes them.
  Result<void> read(uint64_t offset, std::span<std::byte> into) const;
  // The same, for bytes as they are before encoders that are not committed run.
  Result<void> readCommitted(uint64_t offset, std::span<std::byte> into) const;
  Result<void> write(uint64_t offset, std::span<const std::byte> from);

 protected:
  friend class ScratchPool;
  // A buffer that rests in its device's pool does not keep the device alive. False if it needs the device.
  virtual bool detach() { return false; }
  virtual void attach(std::shared_ptr<Device>) {}

  explicit Buffer(uint64_t length) : length_(length) {}
  // Called with a range that lies inside the buffer. The default copies through contents().
  virtual Result<void> copyOut(uint64_t offset, std::span<std::byte> into) const;
  virtual Result<void> copyIn(uint64_t offset, std::span<const std::byte> from);

 private:
  template <typename Wait>
  Result<void> readAfter(Wait wait, uint64_t offset, std::span<std::byte> into) const;
  MemoryRange part(uint64_t offset, uint64_t bytes) const;

  uint64_t length_;
  bool isOrdered_ = false;
};

class Tensor {
 public:
  Tensor() = default;  // no memory; ops refuse it
  // Defined elsewhere: descriptors hold many tensors, and every copy of one would inline all of this.
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();

  static Result<Tensor> zeros(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape);
  // New memory that is to be written before it is read: its bytes are undefined.
  static Result<Tensor> undefined(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape);
  // Over memory that exists already; byteOffset counts from the start of the buffer.
  static Result<Tensor> over(std::shared_ptr<Buffer> buffer, DType dtype, const Shape& shape, uint64_t byteOffset = 0);

  // Entries [begin, begin + count) of the outermost axis of this tensor.
  Result<Tensor> slice(uint64_t begin, uint64_t count) const;
  Result<Tensor> reshaped(const Shape& shape) const;
  // The same bytes read as another dtype: the last axis shrinks or grows.
  Result<Tensor> viewedAs(DType dtype) const;

  explicit operator bool() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  uint64_t byteOffset() const { return byteOffset_; }
  uint64_t byteCount() const { return shape_.elementCount() * byteSize(dtype_); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  MemoryRange range() const;
  std::string text() const;  // "f16 [8, 128]", or "a tensor without memory"

  // Whole-tensor copies; the span must be exactly byteCount() long. They wait as Buffer's do.
  Result<void> read(std::span<std::byte> into) const;
  Result<void> write(std::span<const std::byte> from) const;

 private:
  std::shared_ptr<Buffer> buffer_;
  DType dtype_ = DType::f32;
  Shape shape_;
  uint64_t byteOffset_ = 0;
};

}  // namespace mnk
