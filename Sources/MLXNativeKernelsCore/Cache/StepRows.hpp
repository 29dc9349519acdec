// The rows of a step: which sequences of a cache they belong to, at which positions, and how a call is divided.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/HeadsMemory.hpp"

namespace mnk {

// Neighboring rows of a call that are tokens of one sequence.
struct StepEntry {
  uint32_t sequence = 0;
  uint64_t rows = 0;
  CacheCursor before = {};        // of the sequence at the first row
  CacheCursor after = {};         // behind the last row, once all rows of the call are stored
  StepEntry* previous = nullptr;  // the one before it of the same sequence
  bool isLast = true;             // of its sequence

  // The sequence as the last row sees it.
  AttendedSequence attended() const {
    return {.sequence = sequence, .length = after.next, .highest = after.highest > after.next ? after.highest : 0};
  }
};

// Fails unless the tokens have no axis of sequences, or one of extent 1.
Result<void> checkOneSequence(const HeadsView& view);

// The entries of a list, linked by sequence, without cursors. Without counts, a view with the number of sequences that
// are listed gives each its own tokens, and a view with one sequence gives each one token; a single sequence takes all
// tokens.
Result<std::vector<StepEntry>> stepEntries(const HeadsView& view, std::span<const uint32_t> sequences,
                                           const std::optional<std::vector<uint32_t>>& rowCounts);

// Fails if the sequence would grow beyond the positions that attention supports.
Result<void> checkPositions(uint32_t sequence, uint64_t end);

// How many rows some entries have: `rows` each, or 0 if they differ.
struct RowCounts {
  uint64_t total = 0;
  uint64_t entries = 0;
  uint64_t rows = 0;

  static RowCounts of(std::span<const StepEntry> entries);
  bool areEqual() const { return rows != 0 || total == 0; }
  // Whether `runs` runs of `rows` rows are all of them, in this shape.
  bool isAll(uint64_t runRows, uint64_t runs) const { return runs == entries && runRows == rows && rows != 0; }
};

// `count` runs of `rows` tokens each, starting at a token, as a view with `count` sequences. In a view with several
// sequences, tokens are numbered across sequences; several runs must be its sequences, and one lies within a sequence.
HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count);

// The part of the results for the rows from `first` on, shaped as results of `count` sequences with `rows` rows.
Result<AttentionResults> resultsOf(AttentionResults results, const RowCounts& call, uint64_t first, uint64_t rows,
                                   uint64_t count);
// Checks all results before they are divided: either one axis of all rows, or an axis of entries and one of rows.
Result<void> checkResults(const AttentionResults& results, const RowCounts& rows, uint64_t heads, uint64_t headDim);
// Each part of a call checks its own operands. This checks that no part writes results or `targets` that another part
// reads.
Result<void> checkOverlap(const std::vector<NamedRange>& sources, const AttentionResults& results,
                          std::vector<NamedRange> targets = {});

}  // namespace mnk
