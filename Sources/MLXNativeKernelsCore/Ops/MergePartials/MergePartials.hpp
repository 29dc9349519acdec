// The contract of MergePartials.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<MergePartials>> mergePartialsRules();

// The axes of the rows: the axes of the partials without the parts and the elements. Heads come last.
std::vector<uint64_t> rowAxes(const MergePartials& op);

}  // namespace mnk
