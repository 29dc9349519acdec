// Tables of signs, and the search for those that leave least of the structure that rows may have. Any table has rows
// that it makes worse; these should look like nothing that a model writes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mnk::tables {

// The winners of `--search 50000`, by head dimension.
constexpr std::pair<size_t, uint32_t> kSignSeeds[] = {{32, 25484},  {64, 4199},   {128, 28192},
                                                      {256, 23169}, {512, 34600}, {80, 1986},
                                                      {96, 11958},  {112, 25721}, {192, 9446}};

// Bit j % 32 of word j / 32 set: element j changes its sign. A seed means the same on every machine.
std::vector<uint32_t> signsOf(size_t headDim, uint32_t seed);

// Errors at 4 bits as multiples of what rows of normal numbers have.
struct Verdict {
  uint32_t seed;
  double worst, mean;  // over the kinds of rows, without and with a search for a better scale
};

Verdict judge(size_t headDim, uint32_t seed);

// The seed from 1 to `seeds` that has the least worst.
Verdict bestSigns(size_t headDim, uint32_t seeds);

}  // namespace mnk::tables
