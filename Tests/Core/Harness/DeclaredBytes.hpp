// The bytes that a dispatch declares to read and write.
#pragma once
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// The binding of a tensor's buffer, or null.
const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor);

// The binding of a view at an index, starting at its first vector, or of the whole tensor if its shape describes the
// view. Otherwise the test fails, and the result is null.
const Binding* sourceBindingOf(const Dispatch& dispatch, uint32_t index, const HeadsView& view);
// Returns the flags of the bound part out of the flags for a view's tensor. Fails if a flag outside that part is set.
std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes);

// Fails unless the regions cover exactly these bytes, each once.
void expectCovers(std::string_view name, const std::vector<Region>& regions, const std::vector<bool>& bytes);

}  // namespace mnk::test
