// MultiRoPE, repeated at other positions.
#pragma once
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/MultiRoPE/RotaryDispatch.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

// A hash of all that determines the angles of a position.
uint64_t hashOf(const RotaryEmbedding& rotary);
// Adds what determines the angles: the embedding, and the kinds of positions and offsets without their values.
void describeAngles(const MultiRoPE& op, const RotaryIndices& indices, OpForm& form);
// Adds the values of positions and offsets that are not in tensors.
void addNumbers(OpPositions& positions, const RotaryPositions& of);
void addNumbers(OpPositions& positions, const std::optional<RotaryOffsets>& offsets);
// Patches the position values in the inline parameters of the dispatch.
void patchPositions(const MultiRoPE& op, MultiRoPEParams& params);
void patchNumbers(const MultiRoPE& op, const RotaryIndices& indices, Dispatch& dispatch);

}  // namespace mnk
