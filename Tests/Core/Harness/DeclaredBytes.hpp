// The bytes that a dispatch declares to read and write.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "MLXNativeKernels/Tensor.hpp"

namespace mnk::test {

// The binding of a tensor's buffer, or null.
const Binding* bindingOf(const Dispatch& dispatch, const Tensor& tensor);

// The binding at an index; otherwise the test fails and ends.
const Binding& bindingAt(const Dispatch& dispatch, uint32_t index);

// Vectors of a tensor, as many bytes each.
std::vector<bool> marked(const Tensor& tensor, uint64_t vectorBytes, const std::vector<uint64_t>& vectors);

// A plan on a line, for golden texts: each kernel and grid, what is bound and declared, inline bytes (in hex where they
// are few) and counted bytes, and scratch memory.
std::string planLine(std::string_view name, const Plan& plan);

// The binding of a view at an index, from its first vector on; of all of a tensor that its shape describes. Null and
// failed for any other.
const Binding* sourceBindingOf(const Dispatch& dispatch, uint32_t index, const HeadsView& view);
// Returns the flags of the bound part out of the flags for a view's tensor. Fails if a flag outside that part is set.
std::vector<bool> boundPart(const Binding& binding, const HeadsView& view, const std::vector<bool>& bytes);

// Fails unless the regions cover exactly these bytes, each once.
void expectCovers(std::string_view name, const std::vector<Region>& regions, const std::vector<bool>& bytes);

}  // namespace mnk::test
