// What can be done to a tensor of any op's call.
#pragma once
#include "Numbers.hpp"

namespace mnk::fuzz {

void changeTheRank(TensorSpec& tensor, test::Seeded& random);
void changeTheDType(TensorSpec& tensor, test::Seeded& random);
// One extent, by one or to a number that arithmetic stumbles over.
void moveAnExtent(TensorSpec& tensor, test::Seeded& random);
// Beside another operand, at its first or last byte, or right before or behind it, where nothing is shared.
void moveBeside(TensorSpec& moved, const TensorSpec& other, test::Seeded& random);

}  // namespace mnk::fuzz
