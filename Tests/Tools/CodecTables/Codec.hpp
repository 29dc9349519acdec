// The part of the `turbo` codec, in double, that the choice of its tables needs: the quantization error of rows.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace mnk::tables {

// The range of the search for a better scale, by bits: 5 candidates from 1 - reach to 1 + reach times the plain scale,
// or 17 at half the spacing and twice the range. For Gaussian rows of 64 to 512 elements, both are within about one
// percent of the smallest error of any evenly spaced candidates.
constexpr double kReach[] = {0, 0, 0.12, 0.15, 0.16, 0.13, 0.1, 0.09, 0.09};

// Both halves.
struct Codebook {
  std::vector<double> levels;
  std::vector<double> boundaries;
  double reach;
};

Codebook codebookOf(int bits);

// The mean of |r - r'|^2 / |r|^2 for Gaussian rows stored with the plain scale, |r| / sqrt(D).
double expectedError(size_t headDim, const Codebook& codebook);

// The orthonormal rotation: sign flips, then a Walsh-Hadamard transform, in natural order, of each block of the largest
// power of two that divides the length, then the reflection I - 2 J / m across m > 1 blocks. If bit j % 32 of word j /
// 32 is set, element j changes its sign.
std::vector<double> rotated(std::span<const double> row, std::span<const uint32_t> signs);

// The error |r - r'|^2 / |r|^2 of a rotated row r stored as r', with the best of `candidates` scales for its codes, and
// then the least-squares scale, rounded to f16.
double relativeError(std::span<const double> rotatedRow, const Codebook& codebook, int candidates);

}  // namespace mnk::tables
