// Rules for quantized caches that all ops share.
#pragma once
#include <span>
#include <vector>

#include "MLXNativeKernels/KVCodec.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Support/Errors.hpp"

namespace mnk {

std::span<const Rule<QuantizedKVCacheView>> quantizedKVCacheRules();

// Adds the means and channel scales of a plane, with their names.
void addFactors(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane);

// A plane that an op reads, with all that belongs to it.
void addPlane(std::vector<NamedRange>& ranges, const QuantizedKVPlane& plane);

// A plane in the form of an op that repeats, with the indices at which dispatches bind it.
struct PlaneIndices {
  uint32_t codes, scales, means, channelScales;
};
void describePlane(OpForm& form, const QuantizedKVPlane& plane, const PlaneIndices& indices, Access access);

}  // namespace mnk
