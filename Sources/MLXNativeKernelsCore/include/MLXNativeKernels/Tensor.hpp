// A Tensor is a part of a buffer with a dtype and a shape, elements in row-major order without gaps.
// Copies share memory. A tensor always lies inside its buffer, at a multiple of its element size.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "MLXNativeKernels/Buffer.hpp"
#include "MLXNativeKernels/DType.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Shape.hpp"

namespace mnk {

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
