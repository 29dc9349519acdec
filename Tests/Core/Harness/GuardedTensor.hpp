// A tensor in the middle of a larger buffer, with known bytes before, inside and after it, so that tests can prove
// which bytes a kernel leaves unchanged.
#pragma once
#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

class GuardedTensor {
 public:
  // The tensor starts `shift` bytes after a 64-byte boundary of its buffer, and is filled with poison.
  GuardedTensor(const std::shared_ptr<Device>& device, DType dtype, const Shape& shape, uint64_t shift = 0);

  const Tensor& tensor() const { return tensor_; }
  std::vector<std::byte> bytes() const;
  void set(std::span<const std::byte> bytes) const;

  // Fails with the first byte outside the tensor that has changed.
  void expectBordersIntact(std::string_view name, std::source_location where = std::source_location::current()) const;

 private:
  Tensor tensor_;
};

}  // namespace mnk::test
