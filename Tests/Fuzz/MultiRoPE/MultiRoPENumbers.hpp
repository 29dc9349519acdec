// The part of a MultiRoPE that is not about memory.
#pragma once
#include "MultiRoPECall.hpp"

namespace mnk::fuzz {

// A valid embedding for vectors of so many elements. Where positions are all 0, results are as large as inputs.
void drawRotary(MultiRoPEWords& words, Seeded& random, uint64_t headDim);
// Valid positions and offsets for the embedding and the queries, in tensors of these arenas or as lists.
void drawNumbers(MultiRoPEWords& words, Seeded& random, uint32_t positionArena, uint32_t offsetArena);
// Changes one number of the embedding to one that it stumbles over.
void attackRotary(MultiRoPEWords& words, Seeded& random);

}  // namespace mnk::fuzz
