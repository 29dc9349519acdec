// The initial guess of Shaders/KVCacheQuantize/CodeSearch.h: a polynomial F of x > 0 such that F(x) is within one half
// of the number of positive boundaries below x, or of one more.
#pragma once
#include <span>
#include <vector>

namespace mnk::tables {

// Five coefficients, of x, x^2 and so on, and the largest number that is guessed: it stays beyond the last boundary,
// with a good guess, when multiplied by any number from 1 / (1 + reach) to 1 / (1 - reach). `boundaries` are the
// positive ones, in ascending order. Throws std::runtime_error if the guess is not good enough.
std::vector<float> codeGuess(int bits, std::span<const float> boundaries, double reach);

}  // namespace mnk::tables
