// Fuzzes tensors themselves: shapes, offsets, slices, new shapes and copies that no memory or no arithmetic holds.
#pragma once
#include "Target.hpp"

namespace mnk::fuzz {

Target tensorTarget();

}  // namespace mnk::fuzz
