// The rows of a call that attends over a cache, and how they are divided among sequences.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "Cache/SequenceRows.hpp"
#include "MLXNativeKernels/FlashDecode.hpp"
#include "Ops/Common/Overlap.hpp"

namespace mnk {

// The rows of a call: `rows` for each of `entries`, or 0 if the counts differ.
struct CallRows {
  uint64_t total = 0;
  uint64_t entries = 0;
  uint64_t rows = 0;

  static CallRows of(std::span<const SequenceRows> entries);
};

// The part of the results for the rows from `first` on, shaped as results of `count` sequences with `rows` rows.
Result<AttentionResults> resultsOf(AttentionResults results, const CallRows& call, uint64_t first, uint64_t rows,
                                   uint64_t count);
// Checks all results before they are divided: either one axis of all rows, or an axis of entries and one of rows.
Result<void> checkResults(std::string_view call, const AttentionResults& results, const CallRows& rows, uint64_t heads,
                          uint64_t headDim);
// Refuses partials, which do not say what the part of the keys is.
Result<void> checkTarget(std::string_view call, const AttentionResults& results);
// Each part of a call checks its own operands. This checks that no part writes results or `targets` that another part
// reads.
Result<void> checkOverlap(std::string_view call, const std::vector<NamedRange>& sources,
                          const AttentionResults& results, std::vector<NamedRange> targets = {});

// The sequence as seen by rows that are followed by `rowsBehind` newer tokens.
AttendedSequence attendedBy(uint32_t sequence, const CacheCursor& cursor, uint64_t rowsBehind = 0);
// Rows of an entry are older than those of a later one for the same sequence.
Result<std::vector<AttendedSequence>> attendedSequences(
    std::span<const SequenceRows> entries, bool isCausal,
    const std::function<Result<CacheCursor>(uint32_t sequence)>& cursorOf);

Error tooFewPositions(uint64_t rows, uint32_t sequence, const CacheCursor& cursor);
Error listedAgain(uint32_t sequence);
Error unevenMask();
Error dividedMask();

}  // namespace mnk
