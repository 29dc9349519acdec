#include "Cache/SequenceRows.hpp"

#include <algorithm>

#include "Support/Format.hpp"

namespace mnk {

namespace {

Error misfit(const HeadsView::Strides& strides, std::string expected, std::string_view fix) {
  return {.op = "AttentionCache",
          .what = "the rows do not match the listed sequences",
          .got = strides.sequences == 1 ? countText(strides.tokens, "row")
                                        : fmt::format("{} of {}", countText(strides.sequences, "sequence"),
                                                      countText(strides.tokens, "row")),
          .expected = std::move(expected),
          .fix = std::string(fix)};
}

}  // namespace

Result<std::vector<SequenceRows>> sequenceRows(const HeadsView& view, std::span<const uint32_t> sequences,
                                               std::span<const uint32_t> rowCounts) {
  const HeadsView::Strides strides = view.resolved();
  // If the product overflows, one of its factors is already too large.
  const uint64_t largest = std::max({strides.sequences, strides.tokens, strides.totalTokens()});
  if (largest >= kMaxKVExtent) {
    return Error{.op = "AttentionCache",
                 .what = "an extent is too large for the kernel",
                 .got = fmt::format("{}", largest),
                 .expected = "less than 2^31 rows",
                 .fix = "Pass fewer rows at a time."};
  }
  std::vector<SequenceRows> entries;
  if (rowCounts.empty()) {
    const bool hasOneEach = strides.sequences == 1 && strides.tokens == sequences.size();
    if (!hasOneEach && strides.sequences != sequences.size()) {
      return misfit(strides,
                    fmt::format("{}, or as many for each of {}", countText(sequences.size(), "row"),
                                countText(sequences.size(), "sequence")),
                    "Pass one row for each listed sequence, an axis of sequences, or row counts.");
    }
    for (const uint32_t sequence : sequences) entries.push_back({sequence, hasOneEach ? 1 : strides.tokens});
    return entries;
  }
  if (rowCounts.size() != sequences.size()) {
    return Error{.op = "AttentionCache",
                 .what = "the row counts do not match the listed sequences",
                 .got = countText(rowCounts.size(), "row count"),
                 .expected = fmt::format("{}, one for each sequence", sequences.size()),
                 .fix = "Pass a row count for each listed sequence; 0 leaves one out."};
  }
  uint64_t total = 0;
  bool areSequences = strides.sequences == sequences.size();
  for (size_t i = 0; i < sequences.size(); ++i) {
    entries.push_back({sequences[i], rowCounts[i]});
    total += rowCounts[i];
    areSequences = areSequences && rowCounts[i] == strides.tokens;
  }
  if ((strides.sequences == 1 && strides.tokens == total) || areSequences) return entries;
  return misfit(strides, fmt::format("{} in one sequence, the sum of the row counts", countText(total, "row")),
                "Pass the rows of all sequences one after another, without an axis of sequences.");
}

Result<void> checkPositions(uint32_t sequence, uint64_t end) {
  if (end < kMaxKVExtent) return {};
  return Error{.op = "AttentionCache",
               .what = "the sequence would have too many positions",
               .got = fmt::format("{} of sequence {}", countText(end, "position"), sequence),
               .expected = "at most 2^31 - 1 positions",
               .fix = "Reset the sequence, and append again what it is to hold."};
}

HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count) {
  HeadsView::Strides strides = view.resolved();
  if (strides.sequences == 1) {
    strides.offset += firstToken * strides.tokenStride;
    strides.sequenceStride = rows * strides.tokenStride;
  } else {
    strides.offset += firstToken / rows * strides.sequenceStride;
  }
  strides.sequences = count;
  strides.tokens = rows;
  return {view.tensor, strides};
}

}  // namespace mnk
