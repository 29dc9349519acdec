// A buffer without a device or memory, to test rules and plans in isolation. It can be up to 2^63 bytes long.
#pragma once
#include <initializer_list>
#include <memory>

#include "Harness/Check.hpp"
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
inline Tensor planTensor(DType dtype, const Shape& shape, uint64_t begin = 0) {
  const uint64_t bytes = shape.elementCount() * byteSize(dtype);
  return REQUIRE(Tensor::over(std::make_shared<PlanBuffer>(bytes, begin), dtype, shape));
}
inline Tensor planTensor(DType dtype, std::initializer_list<uint64_t> extents, uint64_t begin = 0) {
  return planTensor(dtype, REQUIRE(Shape::make(extents)), begin);
}
// A tensor over the memory of another, from `offset` bytes behind its start on, with the dtype and shape of a third.
inline Tensor aliased(const Tensor& memory, const Tensor& like, uint64_t offset = 0) {
  return REQUIRE(Tensor::over(memory.buffer(), like.dtype(), like.shape(), memory.byteOffset() + offset));
}

// f16(2, 3) is planTensor(DType::f16, {2, 3}).
#define MNK_PLAN_TENSOR(dtype)                                            \
  template <typename... Extents>                                          \
  Tensor dtype(Extents... extents) {                                      \
    return planTensor(DType::dtype, {static_cast<uint64_t>(extents)...}); \
  }
MNK_PLAN_TENSOR(f32)
MNK_PLAN_TENSOR(f16)
MNK_PLAN_TENSOR(bf16)
MNK_PLAN_TENSOR(u32)
MNK_PLAN_TENSOR(u16)
MNK_PLAN_TENSOR(u8)
MNK_PLAN_TENSOR(i32)
#undef MNK_PLAN_TENSOR

constexpr uint64_t k2To31 = uint64_t{1} << 31;  // more than any extent may be

}  // namespace mnk::test
