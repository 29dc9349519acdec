// Numbers that arithmetic stumbles over, and tensors that can be made whatever was done to their shapes.
#pragma once
#include <initializer_list>

#include "Arena.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::fuzz {

inline bool coin(test::Seeded& random, uint64_t one, uint64_t in) {
  return random.below(in) < one;
}

template <typename T>
T oneOf(test::Seeded& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}

// At most two away from 0, 2^31, 2^32, 2^63, 2^64 or one of the numbers given.
uint64_t edge(test::Seeded& random, std::initializer_list<uint64_t> near);

// Somewhere in its region, often at one of its ends. False where it does not fit.
bool place(TensorSpec& spec, test::Seeded& random);
// Makes extents that no memory here could hold harmless, by giving the tensor no elements, and places it if it has to
// move. What was done to the shape stays, as far as the C API would make such a tensor.
void makePossible(TensorSpec& spec, test::Seeded& random);

}  // namespace mnk::fuzz
