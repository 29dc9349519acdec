// The RoPE rotation of a cache step: of the whole step, of one entry, or of one chunk.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

namespace mnk {

// The rotation of all tokens of a step that has a rotary argument; `cursors` are those of its sequences. If
// canRotateAtOnce is false, it lacks the positions and is only good for checking rules.
Result<MultiRoPE> rotationOf(const AppendAndAttend& step, std::span<const SequenceRows> entries,
                             const std::map<uint32_t, CacheCursor>& cursors);
// Whether one dispatch can take the positions of all tokens.
bool canRotateAtOnce(const AppendAndAttend& step, const CallRows& call);

// Narrows the rotary argument to one entry, whose tokens start at `first`. Positions in a tensor are kept whole.
Result<void> takeEntry(RotaryStep& rotary, uint64_t entry, uint64_t first, uint64_t tokens);

// The rotation of `tokens` tokens, from token `first` on, of a step with one sequence. They are stored from `position`
// on in the cache.
MultiRoPE rotationOf(const AppendAndAttend& step, uint64_t first, uint64_t tokens, uint64_t position);

// Adds positions and offsets that lie in tensors.
void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary);

}  // namespace mnk
