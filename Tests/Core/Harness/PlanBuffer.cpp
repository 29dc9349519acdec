#include "Harness/PlanBuffer.hpp"

#include "Harness/Check.hpp"

namespace mnk::test {

Tensor planTensor(DType dtype, const Shape& shape, uint64_t begin) {
  return REQUIRE(
      Tensor::over(std::make_shared<PlanBuffer>(shape.elementCount() * byteSize(dtype), begin), dtype, shape));
}

Tensor planTensor(DType dtype, std::initializer_list<uint64_t> extents, uint64_t begin) {
  return planTensor(dtype, REQUIRE(Shape::make(extents)), begin);
}

Tensor aliased(const Tensor& memory, const Tensor& like, uint64_t offset) {
  return REQUIRE(Tensor::over(memory.buffer(), like.dtype(), like.shape(), memory.byteOffset() + offset));
}

}  // namespace mnk::test
