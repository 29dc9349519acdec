// Numbers that arithmetic stumbles over, and tensors that can be made whatever was done to their shapes.
#pragma once
#include "Arena.hpp"
#include "Harness/Seeded.hpp"

namespace mnk::fuzz {

using test::coin, test::edge, test::oneOf;

// Somewhere in its region, often at one of its ends. False where it does not fit.
bool place(TensorSpec& spec, test::Seeded& random);
// Makes extents that no memory here could hold harmless, by giving the tensor no elements, and places it if it has to
// move. What was done to the shape stays, as far as the C API would make such a tensor.
void makePossible(TensorSpec& spec, test::Seeded& random);

}  // namespace mnk::fuzz
