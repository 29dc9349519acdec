// The rotation of a step of a cache, whole and chunk by chunk.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/AttentionCache.hpp"
#include "Ops/Common/Overlap.hpp"

namespace mnk {

// Of `tokens` tokens of a step with a rotary argument, from token `first` on, which get positions from `position` on in
// the cache. Of positions in a tensor all are kept.
MultiRoPE rotationOf(const AppendAndAttend& step, uint64_t first, uint64_t tokens, uint64_t position);

// Adds positions and offsets that lie in tensors.
void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary);

}  // namespace mnk
