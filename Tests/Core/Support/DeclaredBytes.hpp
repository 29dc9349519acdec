// What a dispatch says that it reads and writes.
#pragma once
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// The binding of a tensor's buffer, or null.
const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor);

// Fails unless the regions cover exactly the given bytes, each once.
void expectCovers(std::string_view name, const std::vector<Region>& regions, const std::vector<bool>& bytes);

}  // namespace mnk::test
