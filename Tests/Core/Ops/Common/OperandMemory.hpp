// What tensors held before an op ran, and what they hold now. Checks of results read both through it, whether the
// tensors lie in buffers of their own or side by side.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

struct OperandMemory {
  std::function<std::vector<std::byte>(const Tensor&)> before;
  std::function<std::vector<std::byte>(const Tensor&)> now;
};

}  // namespace mnk::test
