// The operands of an op: how its cases get them, what they held before it ran, and what they hold now. Cases make
// them, references read them, and checks compare them through these, whether they lie in buffers of their own, side by
// side or nowhere.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// A tensor `shift` bytes past an aligned address.
using MakeNamedTensor = std::function<Tensor(std::string_view name, DType dtype, const Shape& shape, uint64_t shift)>;
using ReadTensor = std::function<std::vector<std::byte>(const Tensor&)>;

struct OperandMemory {
  ReadTensor before;
  ReadTensor now;
};

}  // namespace mnk::test
