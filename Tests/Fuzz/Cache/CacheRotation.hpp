// The rotary argument of a step in numbers, and what it makes of vectors.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "Arena.hpp"
#include "CacheModel.hpp"

namespace mnk::fuzz {

// The next positions of the cache as an argument, with the meaning of its lists.
struct NextSpec {
  bool hasCache = true;
  bool hasSequences = true, hasRowCounts = false;
  std::vector<uint32_t> sequences, rowCounts;
  std::optional<size_t> sequenceCount;  // in place of the list's own
  std::vector<StepEntry> entries;
};

struct CacheRotation {
  mnk_rotary_embedding embedding{};
  std::optional<int64_t> first;           // position of every entry
  std::vector<int32_t> positions;         // of all rows
  std::optional<NextSpec> next;           // without any of these, positions are those that rows get in the cache
  std::optional<TensorSpec> positionsIn;  // which holds them in place of a list
  std::vector<int32_t> offsets;           // of all entries

  Angles angles() const { return {embedding.layout, embedding.base, embedding.rope_dim, embedding.is_inverse}; }
  bool hasNumbers() const { return first || (!positions.empty() && !positionsIn); }
  // The position by which each row of these entries is rotated. In the cache, rows have the other ones.
  std::vector<int64_t> turns(const std::vector<StepEntry>& entries, const std::vector<uint64_t>& inCache) const;
  // Rotates all heads of a row, and rounds as memory of the dtype does.
  void rotate(float* row, uint64_t heads, uint64_t headDim, int64_t position, mnk_dtype dtype) const;
};

// For a step with rows, all of which have as many in each entry if it is even. Positions that are to lie in a tensor
// are listed; those of a cache are the caller's.
CacheRotation drawRotation(test::Seeded& random, uint64_t headDim, uint64_t rows, uint64_t entries, bool isEven);
// The next positions of these rows, in one of the ways to list them. Rows that lie in an axis of sequences need
// an entry for each of these.
NextSpec drawNext(const std::vector<StepEntry>& entries, bool hasRowCounts, bool hasAxis, const CacheModel& model,
                  test::Seeded& random);
// Breaks one thing, and returns what the error must say of it.
std::string mutate(CacheRotation& rotation, bool isEven, test::Seeded& random);
// The same of next positions; empty where there is nothing of the kind that was drawn.
// `positions` is what an error calls them.
std::string mutateNext(CacheRotation& rotation, std::string_view positions, const CacheModel& model,
                       test::Seeded& random);

float rounded(float number, mnk_dtype dtype);

}  // namespace mnk::fuzz
