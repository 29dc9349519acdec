#include "Cache/StepRows.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "Cache/AttentionCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

Error rowsMisfit(const HeadsView::Strides& strides, std::string expected, std::string_view fix) {
  return cacheError("the rows do not match the listed sequences",
                    strides.sequences == 1 ? countText(strides.tokens, "row")
                                           : fmt::format("{} of {}", countText(strides.sequences, "sequence"),
                                                         countText(strides.tokens, "row")),
                    std::move(expected), fix);
}

// Narrows a result tensor to the rows from `first` on, shaped as the result of `count` sequences with `rows` rows. Its
// last `innerAxes` axes belong to one row; the axes before are either one axis of all rows, or entries and rows. A
// tensor with other axes is left unchanged, and the rules reject it.
Result<void> takeRows(Tensor& tensor, uint32_t innerAxes, const RowCounts& call, uint64_t first, uint64_t rows,
                      uint64_t count) {
  const auto extents = tensor.shape().extents();
  if (extents.size() <= innerAxes || (call.entries == 1 && rows == call.total)) return {};
  const auto outer = extents.first(extents.size() - innerAxes);
  const std::vector<uint64_t> inner(extents.end() - innerAxes, extents.end());
  const bool hasAll = outer.size() == 1 && outer[0] == call.total;
  const bool hasEntries = outer.size() == 2 && call.rows != 0 && outer[0] == call.entries && outer[1] == call.rows;
  if (!hasAll && !hasEntries) return {};
  const auto reshaped = [&](std::initializer_list<uint64_t> axes) -> Result<void> {
    std::vector<uint64_t> all(axes);
    all.insert(all.end(), inner.begin(), inner.end());
    MNK_TRY(auto shape, Shape::make(all));
    MNK_TRY(auto reshaped, tensor.reshaped(shape));
    tensor = std::move(reshaped);
    return {};
  };
  MNK_TRY(reshaped({call.total}));
  MNK_TRY(auto part, tensor.slice(first, rows * count));
  tensor = std::move(part);
  return reshaped({count, rows});
}

}  // namespace

Result<void> checkOneSequence(const HeadsView& view) {
  const HeadsView::Strides strides = view.resolved();
  if (strides.sequences <= 1) return {};
  return cacheError(
      "the tokens are of several sequences",
      fmt::format("{} of {}", countText(strides.sequences, "sequence"), countText(strides.tokens, "token")),
      "tokens of one sequence", "List the sequences, or reshape the tokens.");
}

namespace {

Result<std::vector<StepEntry>> unlinkedEntries(const HeadsView& view, std::span<const uint32_t> sequences,
                                               const std::optional<std::vector<uint32_t>>& rowCounts) {
  const HeadsView::Strides strides = view.resolved();
  if (sequences.size() == 1 && !rowCounts) {
    MNK_TRY(checkOneSequence(view));
    return std::vector{StepEntry{sequences[0], strides.totalTokens()}};
  }
  // If the product overflows, one of its factors is already too large.
  const uint64_t largest = std::max({strides.sequences, strides.tokens, strides.totalTokens()});
  if (largest >= kMaxKVExtent) {
    return cacheError("an extent is too large for the kernel", fmt::format("{}", largest), "less than 2^31 rows",
                      "Pass fewer rows at a time.");
  }
  if (sequences.empty() && strides.totalTokens() == 0) return std::vector<StepEntry>();
  if (sequences.empty()) {
    return cacheError("the step has no sequence", "an empty list of sequences", "at least one sequence",
                      "List the sequences that the tokens continue.");
  }
  std::vector<StepEntry> entries;
  entries.reserve(sequences.size());
  if (!rowCounts) {
    const bool hasOneEach = strides.sequences == 1 && strides.tokens == sequences.size();
    if (!hasOneEach && strides.sequences != sequences.size()) {
      return rowsMisfit(strides,
                        fmt::format("{}, or the same number for each of {}", countText(sequences.size(), "row"),
                                    countText(sequences.size(), "sequence")),
                        "Pass one row for each listed sequence, an axis of sequences, or row counts.");
    }
    for (const uint32_t sequence : sequences) entries.push_back({sequence, hasOneEach ? 1 : strides.tokens});
    return entries;
  }
  if (rowCounts->size() != sequences.size()) {
    return cacheError("the row counts do not match the listed sequences", countText(rowCounts->size(), "row count"),
                      fmt::format("{}, one for each sequence", sequences.size()),
                      "Pass a row count for each listed sequence; 0 leaves one out.");
  }
  uint64_t total = 0;
  bool areSequences = strides.sequences == sequences.size();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const uint32_t rows = (*rowCounts)[i];
    entries.push_back({sequences[i], rows});
    total += rows;
    areSequences = areSequences && rows == strides.tokens;
  }
  if ((strides.sequences == 1 && strides.tokens == total) || areSequences) return entries;
  return rowsMisfit(strides, fmt::format("{} in one sequence, the sum of the row counts", countText(total, "row")),
                    "Pass the rows of all sequences one after another, without an axis of sequences.");
}

}  // namespace

Result<std::vector<StepEntry>> stepEntries(const HeadsView& view, std::span<const uint32_t> sequences,
                                           const std::optional<std::vector<uint32_t>>& rowCounts) {
  MNK_TRY(auto entries, unlinkedEntries(view, sequences, rowCounts));
  const bool areAscending = std::ranges::adjacent_find(sequences, std::greater_equal()) == sequences.end();
  if (areAscending) return entries;  // each sequence once
  std::map<uint32_t, StepEntry*> listed;
  for (StepEntry& entry : entries) {
    StepEntry*& newest = listed[entry.sequence];
    entry.previous = newest;
    if (newest) newest->isLast = false;
    newest = &entry;
  }
  return entries;
}

Result<void> checkPositions(uint32_t sequence, uint64_t end) {
  if (end < kMaxKVExtent) return {};
  return cacheError("the sequence would have too many positions",
                    fmt::format("{} of sequence {}", countText(end, "position"), sequence),
                    "at most 2^31 - 1 positions", "Reset the sequence and append its tokens again.");
}

RowCounts RowCounts::of(std::span<const StepEntry> entries) {
  RowCounts counts{.entries = entries.size(), .rows = entries.empty() ? 0 : entries.front().rows};
  for (const StepEntry& entry : entries) {
    counts.total += entry.rows;
    if (entry.rows != entries.front().rows) counts.rows = 0;
  }
  return counts;
}

HeadsView runsOf(const HeadsView& view, uint64_t firstToken, uint64_t rows, uint64_t count) {
  HeadsView::Strides strides = view.resolved();
  if (strides.sequences == 1) {
    strides.offset += firstToken * strides.tokenStride;
    strides.sequenceStride = rows * strides.tokenStride;
  } else if (strides.tokens != 0) {
    strides.offset += firstToken / strides.tokens * strides.sequenceStride;
    strides.offset += firstToken % strides.tokens * strides.tokenStride;
  }
  strides.sequences = count;
  strides.tokens = rows;
  return {view.tensor, strides};
}

Result<AttentionResults> resultsOf(AttentionResults results, const RowCounts& call, uint64_t first, uint64_t rows,
                                   uint64_t count) {
  const auto take = [&](Tensor& tensor, uint32_t innerAxes) {
    return takeRows(tensor, innerAxes, call, first, rows, count);
  };
  if (results.output) MNK_TRY(take(*results.output, 2));
  if (results.partials) {
    MNK_TRY(take(results.partials->sums, 2));
    MNK_TRY(take(results.partials->stats, 2));
  }
  if (results.logSumExp) MNK_TRY(take(*results.logSumExp, 1));
  return results;
}

Result<void> checkResults(const AttentionResults& results, const RowCounts& rows, uint64_t heads, uint64_t headDim) {
  std::vector<std::vector<uint64_t>> forms{{rows.total, heads}};
  if (rows.areEqual()) forms.push_back({rows.entries, rows.rows, heads});
  if (rows.total == 1) forms.push_back({heads});
  const auto misfit = firstMisfit(results, forms, headDim);
  if (!misfit) return {};
  return cacheError("a result does not match the queries", misfit->got, misfit->expected,
                    "Give results the axes of the queries and the head dim of values.");
}

Result<void> checkOverlap(const std::vector<NamedRange>& sources, const AttentionResults& results,
                          std::vector<NamedRange> targets) {
  addTargets(targets, results);
  const auto overlap = firstOverlap(sources, targets);
  if (!overlap) return {};
  return cacheError("operands share memory", overlap->text(), "separate memory", "Write results to separate memory.");
}

}  // namespace mnk
