// The levels of the optimal (Lloyd-Max) quantizer with 2^bits levels for the standard normal distribution: each level
// is the mean of its cell, and cells meet halfway between levels.
#pragma once
#include <vector>

namespace mnk::tables {

// The positive half in ascending order; the negative half is symmetric.
std::vector<double> lloydMaxLevels(int bits);

// The nearest float. Throws std::runtime_error if `x` is so close to the middle of two floats that rounding differences
// between machines could decide.
float clearlyRounded(double x);

}  // namespace mnk::tables
