// The rotation of a step of a cache, whole, entry by entry and chunk by chunk.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk {

// Of all tokens of a step with a rotary argument, whose sequences have these cursors. What it cannot say at once, for
// which canRotateTogether is false, is left out: then it serves for the rules alone.
Result<MultiRoPE> rotationOf(const AppendAndAttend& step, std::span<const SequenceRows> entries,
                             const std::map<uint32_t, CacheCursor>& cursors);
// Whether one dispatch can take the positions of all tokens.
bool canRotateTogether(const AppendAndAttend& step, const CallRows& call);

// Makes the argument that of one entry, whose tokens are those from `first` on. Positions in a tensor stay, all of
// them.
Result<void> takeEntry(RotaryStep& rotary, uint64_t entry, uint64_t first, uint64_t tokens);

// Of `tokens` tokens of a step of one sequence, from token `first` on, which get positions from `position` on in the
// cache.
MultiRoPE rotationOf(const AppendAndAttend& step, uint64_t first, uint64_t tokens, uint64_t position);

// Adds positions and offsets that lie in tensors.
void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary);

}  // namespace mnk
