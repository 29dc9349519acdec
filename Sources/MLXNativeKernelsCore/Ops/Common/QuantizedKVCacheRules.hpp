// What every op asks of a quantized cache.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/QuantizedKVCacheView.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<QuantizedKVCacheView>> quantizedKVCacheRules();

// Names of what a plane's vectors are made of besides codes and scales.
void addFactors(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane);

}  // namespace mnk
