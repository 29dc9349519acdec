// Numbers of a tensor of a float type, as `float`. Rounds to nearest, ties to even.
#pragma once
#include <span>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

// Both spans are as long as the tensor has elements.
Result<void> readFloats(const Tensor& tensor, std::span<float> into);
Result<void> writeFloats(const Tensor& tensor, std::span<const float> from);

}  // namespace mnk
