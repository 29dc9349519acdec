// The guess of a code that Shaders/KVCacheQuantize/CodeSearch.h starts from: a polynomial F of a number x > 0, such
// that F(x) is within half of one of how many positive boundaries lie below x, or of one more.
#pragma once
#include <span>
#include <vector>

namespace mnk::tables {

// Coefficients of x, x^2 and so on, five of them, and the largest number that is guessed: it stays beyond the last
// boundary, and its guess good, where it is multiplied by any number from 1 / (1 + reach) to 1 / (1 - reach).
// `boundaries` are the positive ones, in rising order. Throws std::runtime_error where the guess is not good enough.
std::vector<float> codeGuess(int bits, std::span<const float> boundaries, double reach);

}  // namespace mnk::tables
