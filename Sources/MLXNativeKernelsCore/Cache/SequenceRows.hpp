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

// One for each listed sequence. Without counts a view of as many sequences divides its tokens among them, and a view of
// one sequence has a token for each.
Result<std::vector<SequenceRows>> sequenceRows(const HeadsView& view, std::span<const uint32_t> sequences,
                                               std::span<const uint32_t> rowCounts);

// Refuses to let a sequence grow to an end that attention cannot count to.
Result<void> checkPositions(uint32_t sequence, uint64_t end);

// `count` runs of `rows` tokens each, from a token on, as a view of as many sequences. Tokens of a view with several
// sequences are counted sequence after sequence; a run then is one of its sequences.
HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count);

}  // namespace mnk
