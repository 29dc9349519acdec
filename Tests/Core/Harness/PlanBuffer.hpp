// A buffer without a device and without memory, so that rules and plans are tested on their own. It may be as long
// as 2^63 bytes.
#pragma once
#include <initializer_list>
#include <memory>

#include "MLXNativeKernels/Buffer.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

class PlanBuffer : public Buffer {
 public:
  // Buffers made with one space share its addresses; without one, a buffer overlaps no other.
  explicit PlanBuffer(uint64_t length, uint64_t begin = 0, const void* space = nullptr)
      : Buffer(length), begin_(begin), space_(space ? space : this) {}

  std::shared_ptr<Device> device() const override { return nullptr; }
  MemoryRange range() const override { return {space_, begin_, begin_ + length()}; }
  std::byte* contents() override { return nullptr; }

 private:
  uint64_t begin_;
  const void* space_;
};

// A tensor over its own buffer, which starts `begin` bytes after an aligned address.
Tensor planTensor(DType dtype, const Shape& shape, uint64_t begin = 0);
Tensor planTensor(DType dtype, std::initializer_list<uint64_t> extents, uint64_t begin = 0);

}  // namespace mnk::test
