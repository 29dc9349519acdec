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

// `rows` of each of `entries`, or 0 where counts differ.
struct CallRows {
  uint64_t total = 0;
  uint64_t entries = 0;
  uint64_t rows = 0;

  static CallRows of(std::span<const SequenceRows> entries);
};

// The part of all results that rows from `first` on have, as the results of `count` sequences of `rows` rows.
Result<AttentionResults> resultsOf(AttentionResults results, const CallRows& call, uint64_t first, uint64_t rows,
                                   uint64_t count);
// All results, before they are divided: of rows one after another, or of entries and their rows.
Result<void> checkResults(std::string_view call, const AttentionResults& results, const CallRows& rows, uint64_t heads,
                          uint64_t headDim);
// Each part of a call is checked by itself; results of one part, and `targets`, must not be what another one reads.
Result<void> checkOverlap(std::string_view call, const std::vector<NamedRange>& sources,
                          const AttentionResults& results, std::vector<NamedRange> targets = {});

// A sequence as rows see it that `rowsBehind` newer tokens follow.
AttendedSequence attendedBy(uint32_t sequence, const CacheCursor& cursor, uint64_t rowsBehind = 0);
// Rows of an entry are older than those of a later one for the same sequence.
Result<std::vector<AttendedSequence>> attendedSequences(
    std::span<const SequenceRows> entries, bool isCausal,
    const std::function<Result<CacheCursor>(uint32_t sequence)>& cursorOf);

Error listedAgain(uint32_t sequence);
Error unevenMask();
Error dividedMask();

}  // namespace mnk
