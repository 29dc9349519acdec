// Which rows of a view belong to which sequences of a cache.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

struct SequenceRows {
  uint32_t sequence = 0;
  uint64_t rows = 0;
};

// The rows of each listed sequence. Without counts, a view with as many sequences as listed gives each its own tokens,
// and a view with one sequence gives each one token.
Result<std::vector<SequenceRows>> sequenceRows(const HeadsView& view, std::span<const uint32_t> sequences,
                                               std::span<const uint32_t> rowCounts);

// Fails if the sequence would grow beyond the positions that attention supports.
Result<void> checkPositions(uint32_t sequence, uint64_t end);

// `count` runs of `rows` tokens each, starting at a token, as a view with `count` sequences. In a view with several
// sequences, tokens are numbered across sequences, and a run must be one of its sequences.
HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count);

}  // namespace mnk
