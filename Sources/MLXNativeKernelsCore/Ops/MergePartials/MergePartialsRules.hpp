// The contract of MergePartials.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/MergePartials.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<MergePartials>> mergePartialsRules();

// Axes of the rows: those of the partials after their parts and before their elements, heads last.
std::vector<uint64_t> rowAxes(const MergePartials& op);

}  // namespace mnk
