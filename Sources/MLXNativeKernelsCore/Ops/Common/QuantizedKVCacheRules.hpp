// What every op asks of a quantized cache.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/QuantizedKVCacheView.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Support/Rule.hpp"

namespace mnk {

std::span<const Rule<QuantizedKVCacheView>> quantizedKVCacheRules();

// Names of what a plane's vectors are made of besides codes and scales.
void addFactors(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane);

// A plane that an op reads, with all that belongs to it.
void addPlane(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane);

// A plane in the form of an op that repeats, with the indices at which dispatches bind it.
struct PlaneIndices {
  uint32_t codes, scales, means, channelScales;
};
void describePlane(OpForm& form, const QuantizedKVPlane& plane, const PlaneIndices& indices, Access access);

}  // namespace mnk
