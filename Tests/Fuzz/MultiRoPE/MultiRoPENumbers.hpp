// The part of a MultiRoPE that is not about memory.
#pragma once
#include "MultiRoPECall.hpp"

namespace mnk::fuzz {

// A valid embedding for vectors of so many elements. Where positions are all 0, results are as large as inputs.
void drawRotary(MultiRoPESpec& spec, Seeded& random, uint64_t headDim);
// Valid positions and offsets for the embedding and the queries, in tensors of these regions or as lists.
void drawNumbers(MultiRoPESpec& spec, Seeded& random, uint32_t positionRegion, uint32_t offsetRegion);
// Changes one number of the embedding to one that it stumbles over.
void mutateRotary(MultiRoPESpec& spec, Seeded& random);

}  // namespace mnk::fuzz
