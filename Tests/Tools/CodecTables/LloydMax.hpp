// The levels of the best quantizer of 2^bits levels for numbers of the standard normal distribution (Lloyd and Max):
// every level is the mean of its cell, and cells meet halfway between levels.
#pragma once
#include <vector>

namespace mnk::tables {

// The positive half in rising order; the other half is its mirror image.
std::vector<double> lloydMaxLevels(int bits);

// The nearest float. Throws std::runtime_error where `x` is so near to the middle of two floats that the last digits of
// a computation, which differ between machines, could decide.
float clearlyRounded(double x);

}  // namespace mnk::tables
