// MultiRoPE, repeated at other positions.
#pragma once
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Ops/MultiRoPE/RotaryDispatch.hpp"
#include "Runtime/RepeatedOp.hpp"

namespace mnk {

// What angles are made of: the embedding, and positions and offsets but for their numbers.
void describeAngles(const MultiRoPE& op, const RotaryIndices& indices, OpForm& form);
// The numbers of positions and offsets that are not in tensors.
void addNumbers(OpPositions& positions, const RotaryPositions& of);
void addNumbers(OpPositions& positions, const std::optional<RotaryOffsets>& offsets);
// The numbers that travel with the dispatch.
void patchPositions(const MultiRoPE& op, MultiRoPEParams& params);
void patchNumbers(const MultiRoPE& op, const RotaryIndices& indices, Dispatch& dispatch);

}  // namespace mnk
