// Shared by the plans of all kernels that apply RoPE.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"

namespace mnk {

inline constexpr uint64_t kVectorPairs = 4;  // pairs per thread if vectors are aligned to four elements

// Heads that one thread rotates with the angles that it computes once.
uint64_t rotatedHeadsPerGroup(uint64_t tokens);

// Whether the head dim and the rotated part of it have a multiple of four pairs.
bool hasPairsInFours(const MultiRoPE& op);

// Where the kernels find queries, or keys, and where these go.
MultiRoPEOperand rotaryOperand(const HeadsView::Strides& from, const HeadsView::Strides& into, uint64_t headsPerGroup);
// All but the operands.
MultiRoPEParams rotaryParams(const MultiRoPE& op, uint64_t pairsPerUnit, uint64_t headsPerGroup);
std::vector<FunctionConstant> rotaryConstants(const MultiRoPE& op, bool isVectorized);

struct RotaryIndices {
  uint32_t frequencies;
  uint32_t positions;
  uint32_t offsets;
};
// Binds what angles are made of. Positions in a tensor are those from `firstToken` on, on each axis.
void bindRotary(Dispatch& dispatch, const MultiRoPE& op, const RotaryIndices& indices, uint64_t firstToken = 0);

}  // namespace mnk
