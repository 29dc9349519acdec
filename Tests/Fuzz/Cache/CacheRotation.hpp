// The rotary argument of a step in numbers, and what it makes of vectors.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "Arena.hpp"

namespace mnk::fuzz {

struct CacheRotation {
  size_t size = sizeof(mnk_rotary_step);
  mnk_rotary_embedding embedding{};
  std::optional<int64_t> first;           // position of every entry, which moves on by its rows with every run
  std::vector<int32_t> positions;         // of all rows; without them and a first one, they follow the cache
  std::optional<TensorSpec> positionsIn;  // which holds them in place of a list
  std::vector<int32_t> offsets;           // of all entries

  // Of a row of an entry that is so far in it, after this number of runs; `next` is where it goes in the cache.
  int64_t position(uint64_t row, uint64_t entry, uint64_t rowOfEntry, uint64_t rowsOfEntry, uint64_t next,
                   uint64_t runs) const;
  // Rotates all heads of a row, and rounds as memory of the dtype does.
  void rotate(float* row, uint64_t heads, uint64_t headDim, int64_t position, mnk_dtype dtype) const;
  std::string text() const;
};

// For a step with rows, all of which have as many in each entry if it is even. Positions that are to lie in a tensor
// are listed.
CacheRotation drawRotation(test::Seeded& random, uint64_t headDim, uint64_t rows, uint64_t entries, bool isEven);
// Breaks one thing, and returns what the error must say of it.
std::string mutate(CacheRotation& rotation, bool isEven, test::Seeded& random);

float rounded(float number, mnk_dtype dtype);

}  // namespace mnk::fuzz
