// What plans of kernels that rotate have in common, whatever else these do.
#pragma once
#include <cstdint>
#include <vector>

#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"

namespace mnk {

inline constexpr uint64_t kVectorPairs = 4;  // that a thread turns at once, where vectors are aligned to four elements

// Heads that one thread turns by the angles that it works out once.
uint64_t rotatedHeadsPerGroup(uint64_t tokens);

// Whether pairs come in fours, in vectors of queries and in the part of them that turns.
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
