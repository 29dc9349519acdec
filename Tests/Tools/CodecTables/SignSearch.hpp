// Sign tables, and the search for those that leave the least structure in rows. Every table makes some rows worse;
// these should not resemble what a model produces.
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

// If bit j % 32 of word j / 32 is set, element j changes its sign. A seed means the same on every machine.
std::vector<uint32_t> signsOf(size_t headDim, uint32_t seed);

// Errors at 4 bits relative to those of Gaussian rows.
struct SignErrors {
  uint32_t seed;
  double worst, mean;  // over the kinds of rows, without and with a search for a better scale
};

SignErrors evaluate(size_t headDim, uint32_t seed);

// The seed from 1 to `seeds` with the smallest worst error.
SignErrors bestSigns(size_t headDim, uint32_t seeds);

}  // namespace mnk::tables
