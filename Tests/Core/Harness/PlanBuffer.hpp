// A buffer without a device or memory, to test rules and plans in isolation. It can be up to 2^63 bytes long.
#pragma once
#include <initializer_list>
#include <memory>

#include "MLXNativeKernels/Buffer.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

class PlanBuffer : public Buffer {
 public:
  // Buffers with the same space share its addresses; without one, a buffer overlaps no other.
  explicit PlanBuffer(uint64_t length, uint64_t begin = 0, const void* space = nullptr)
      : Buffer(length), begin_(begin), space_(space ? space : this) {}

  std::shared_ptr<Device> device() const override { return nullptr; }
  MemoryRange range() const override { return {space_, begin_, begin_ + length()}; }
  std::byte* contents() override { return nullptr; }

 private:
  uint64_t begin_;
  const void* space_;
};

// A tensor over its own buffer, `begin` bytes after an aligned address.
Tensor planTensor(DType dtype, const Shape& shape, uint64_t begin = 0);
Tensor planTensor(DType dtype, std::initializer_list<uint64_t> extents, uint64_t begin = 0);

}  // namespace mnk::test
