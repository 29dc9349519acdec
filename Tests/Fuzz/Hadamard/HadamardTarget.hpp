// Hadamard with random and hostile descriptors.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target hadamardTarget();

}  // namespace mnk::fuzz
