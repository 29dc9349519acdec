// The `turbo` codec in double, as far as the choice of its tables needs it: the error of rows that are coded and
// decoded.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mnk::tables {

// How far the search for a better scale goes, by bits: 5 candidates from 1 - reach to 1 + reach times the plain scale,
// or 17 that are half as far apart and so go twice as far. For rows of normal numbers, of 64 to 512 elements, both are
// within about one percent of the least error that evenly spaced candidates reach.
constexpr double kReach[] = {0, 0, 0.12, 0.15, 0.16, 0.13, 0.1, 0.09, 0.09};

// Both halves.
struct Codebook {
  std::vector<double> levels;
  std::vector<double> boundaries;
  double reach;
};

Codebook codebookOf(int bits);

// The mean of |r - r'|^2 / |r|^2 for rows of normal numbers that are stored with the plain scale, |r| / sqrt(D).
double expectedError(size_t headDim, const Codebook& codebook);

// The orthonormal rotation: signs, then a Walsh-Hadamard transform in natural order of each block of the largest power
// of two that divides the length, then the reflection I - 2 J / m across m > 1 blocks. Bit j % 32 of word j / 32 set:
// element j changes its sign.
std::vector<double> rotated(std::span<const double> row, std::span<const uint32_t> signs);

// |r - r'|^2 / |r|^2 for the rotated row r that is stored as r', with the best of so many candidates for the scale of
// its codes, and then the scale of least squares, which is rounded to f16.
double relativeError(std::span<const double> rotatedRow, const Codebook& codebook, int candidates);

}  // namespace mnk::tables
