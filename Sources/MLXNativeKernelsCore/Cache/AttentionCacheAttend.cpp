// Attention over a cache is FlashDecode over its memory, at the lengths that an encoder sees.
#include <algorithm>
#include <map>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Cache/RotatedTokens.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Ops/FlashDecode/AttentionResultRules.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr std::string_view kAttend = "AttentionCache.attend";

// Narrows a result tensor to the rows from `first` on, shaped as the result of `count` sequences with `rows` rows. Its
// last `innerAxes` axes belong to one row; the axes before are either one axis of all rows, or entries and rows. A
// tensor with other axes is left unchanged, and the rules reject it.
Result<void> takeRows(Tensor& tensor, uint32_t innerAxes, const CallRows& call, uint64_t first, uint64_t rows,
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

CallRows CallRows::of(std::span<const SequenceRows> entries) {
  CallRows call{.entries = entries.size(), .rows = entries.empty() ? 0 : entries.front().rows};
  for (const SequenceRows& entry : entries) {
    call.total += entry.rows;
    if (entry.rows != entries.front().rows) call.rows = 0;
  }
  return call;
}

Result<AttentionResults> resultsOf(AttentionResults results, const CallRows& call, uint64_t first, uint64_t rows,
                                   uint64_t count) {
  const auto take = [&](Tensor& tensor, uint32_t innerAxes) {
    return takeRows(tensor, innerAxes, call, first, rows, count);
  };
  if (results.into) MNK_TRY(take(*results.into, 2));
  if (results.partials) {
    MNK_TRY(take(results.partials->sums, 2));
    MNK_TRY(take(results.partials->stats, 2));
  }
  if (results.logSumExp) MNK_TRY(take(*results.logSumExp, 1));
  return results;
}

Result<void> checkResults(std::string_view call, const AttentionResults& results, const CallRows& rows, uint64_t heads,
                          uint64_t headDim) {
  std::vector<std::vector<uint64_t>> forms{{rows.total, heads}};
  if (rows.rows != 0 || rows.total == 0) forms.push_back({rows.entries, rows.rows, heads});
  if (rows.total == 1) forms.push_back({heads});
  const auto misfit = firstMisfit(results, forms, headDim);
  if (!misfit) return {};
  return Error{.op = std::string(call),
               .what = "a result does not match the queries",
               .got = misfit->got,
               .expected = misfit->expected,
               .fix = "Give results the axes of the queries and the head dim of values."};
}

Result<void> checkTarget(std::string_view call, const AttentionResults& results) {
  if (!results.partials) return {};
  return Error{.op = std::string(call),
               .what = "attention over a cache does not give partials",
               .got = "partials as the target",
               .expected = "a tensor for results",
               .fix =
                   "Pass caches with earlier tokens as prefixes. To merge parts yourself, use FlashDecode over the "
                   "cache's view, which takes the position of rows."};
}

Result<void> checkOverlap(std::string_view call, const std::vector<NamedRange>& sources,
                          const AttentionResults& results, std::vector<NamedRange> targets) {
  addTargets(targets, results);
  const auto overlap = firstOverlap(sources, targets);
  if (!overlap) return {};
  return Error{.op = std::string(call),
               .what = "operands share memory",
               .got = overlap->text(),
               .expected = "separate memory",
               .fix = "Write results to separate memory."};
}

AttendedSequence attendedBy(uint32_t sequence, const CacheCursor& cursor, uint64_t rowsBehind) {
  const uint64_t length = cursor.next - std::min(cursor.next, rowsBehind);
  return {.sequence = sequence, .length = length, .highest = cursor.highest > length ? cursor.highest : 0};
}

Result<std::vector<AttendedSequence>> attendedSequences(
    std::span<const SequenceRows> entries, bool isCausal,
    const std::function<Result<CacheCursor>(uint32_t sequence)>& cursorOf) {
  std::vector<AttendedSequence> attended(entries.size());
  struct Listed {
    CacheCursor cursor;  // read once, because other threads may append in the meantime
    uint64_t rowsBehind = 0;
  };
  std::map<uint32_t, Listed> listed;
  for (size_t i = entries.size(); i-- > 0;) {
    const auto [sequence, rows] = entries[i];
    auto found = listed.find(sequence);
    if (found == listed.end()) {
      MNK_TRY(auto known, cursorOf(sequence));
      found = listed.emplace(sequence, Listed{.cursor = known}).first;
    }
    const CacheCursor& cursor = found->second.cursor;
    uint64_t& behind = found->second.rowsBehind;
    // Non-causal rows that see tokens after their own would need two lengths.
    if (behind != 0 && rows != 0 && !isCausal) {
      return listedAgain(sequence);
    }
    if (cursor.next <= behind && rows != 0) return tooFewPositions(behind + rows, sequence, cursor);
    attended[i] = attendedBy(sequence, cursor, behind);
    behind += rows;
  }
  return attended;
}

Error tooFewPositions(uint64_t rows, uint32_t sequence, const CacheCursor& cursor) {
  return {.op = std::string(kAttend),
          .what = "a sequence has fewer positions than queries",
          .got = fmt::format("{} of sequence {}, which has {}", countText(rows, "row"), sequence,
                             countText(cursor.next, "position")),
          .expected = "rows of tokens that were appended",
          .fix = "Append keys and values of the queries' tokens first."};
}

Error listedAgain(uint32_t sequence) {
  return {.op = std::string(kAttend),
          .what = "a sequence is listed again in attention that is not causal",
          .got = fmt::format("sequence {}", sequence),
          .expected = "each sequence once",
          .fix = "List the sequence once, with a row count for all of its rows."};
}

Error unevenMask() {
  return {.op = std::string(kAttend),
          .what = "a mask cannot serve sequences of unequal numbers of rows",
          .got = "a mask, and row counts that differ",
          .expected = "the same number of rows of each sequence",
          .fix = "Attend without a mask, or to sequences with the same number of rows at a time."};
}

Error dividedMask() {
  return {.op = std::string(kAttend),
          .what = "a mask cannot be divided among calls of FlashDecode",
          .got = "a mask, and rows that attend in several parts",
          .expected = "a mask for rows that attend at once",
          .fix = "Attend without a mask, or to each sequence or chunk by itself."};
}

FlashDecode AttentionCache::State::attention(const HeadsView& queries, const AttentionResults& results,
                                             const AttentionOptions& options,
                                             std::vector<AttendedSequence> attended) const {
  const auto& quantized = storage.quantizedView();
  FlashDecode op{.queries = queries,
                 .over = quantized ? decltype(FlashDecode::over)(*quantized) : storage.view(),
                 .sequences = std::move(attended),
                 .results = results,
                 .options = options};
  op.options.window = windowOf(options);
  if (!results.partials) return op;
  // The part of the rows' own cache, beside those of prefixes.
  for (AttendedSequence& each : op.sequences) {
    const uint64_t rows = each.rows != 0 ? each.rows : queries.resolved().tokens;
    if (!each.position) each.position = static_cast<int64_t>(each.length - rows);
  }
  return op;
}

Result<std::optional<FlashDecode>> AttentionCache::State::attentionOf(
    const HeadsView& queries, const AttentionResults& results, const AttentionOptions& options, const CallRows& call,
    std::span<const SequenceRows> entries, std::span<const AttendedSequence> attended) const {
  // Those that have rows.
  std::vector<AttendedSequence> listed;
  listed.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].rows == 0) continue;
    listed.push_back(attended[i]);
    listed.back().rows = entries[i].rows;
  }
  if (listed.empty()) return std::optional<FlashDecode>();
  const uint64_t rows = listed.front().rows, count = listed.size();
  const bool isEven = std::all_of(listed.begin(), listed.end(), [&](const auto& each) { return each.rows == rows; });
  if (!isEven && options.mask) return unevenMask();
  if (!isEven) return std::optional(attention(queries, results, options, std::move(listed)));
  for (AttendedSequence& each : listed) each.rows = 0;
  MNK_TRY(auto shaped, resultsOf(results, call, 0, rows, count));
  return std::optional(attention(runsOf(queries, 0, rows, count), shaped, options, std::move(listed)));
}

Result<Plan> AttentionCache::State::planAttendRows(const std::shared_ptr<Device>& device, const HeadsView& queries,
                                                   const AttentionResults& results, const AttentionOptions& options,
                                                   const CallRows& call, std::span<const SequenceRows> entries,
                                                   std::span<const AttendedSequence> attended) const {
  MNK_TRY(const auto op, attentionOf(queries, results, options, call, entries, attended));
  if (!op) return Plan{.op = std::string(FlashDecode::name), .dispatches = {}};
  return device ? plan(*op, *device) : plan(*op);
}

Result<void> AttentionCache::State::checkRotated(std::string_view call, const CommandEncoder& encoder,
                                                 CacheCursors::Recording& recording, const HeadsView& queries,
                                                 std::span<const SequenceRows> entries,
                                                 std::span<const AttendedSequence> attended,
                                                 const AttentionOptions& options,
                                                 std::optional<uint64_t> prefixTokens) const {
  if (!options.isCausal || (!encoder.rotatedRows() && !prefixTokens)) return {};  // others have no positions
  MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = queries}, call));
  UsedRows uses{call, encoder, recording, cursors, {}, descriptor.latentDim};
  uint64_t first = 0;
  for (size_t i = 0; i < entries.size(); first += entries[i++].rows) {
    const auto [sequence, rows] = entries[i];
    if (rows <= attended[i].length) uses.placed.push_back({sequence, first, rows, attended[i].length - rows});
  }
  if (prefixTokens) MNK_TRY(uses.checkOffsets(*prefixTokens));
  return uses.checkQueries(queries);
}

std::optional<Error> AttentionCache::State::lostRows(std::span<const SequenceRows> entries,
                                                     std::span<const AttendedSequence> attended,
                                                     const AttentionOptions& options) const {
  const CacheSlots& slots = cursors.slots();
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto [sequence, rows] = entries[i];
    const CacheCursor cursor{.next = attended[i].length, .highest = attended[i].written()};
    if (rows == 0) continue;
    if (cursor.next == 0) return tooFewPositions(rows, sequence, cursor);
    const uint64_t first = cursor.next - std::min(cursor.next, rows), oldest = slots.oldestKept(cursor);
    const bool isLost =
        options.isCausal ? std::max(first, slots.pinned) < std::min(oldest, cursor.next) : slots.count(cursor) == 0;
    if (!isLost) continue;
    return Error{
        .op = std::string(kAttend),
        .what = "rows are of tokens that the ring has overwritten",
        .got = fmt::format("{} up to position {} of sequence {}", countText(rows, "row"), cursor.next - 1, sequence),
        .expected = slots.heldText(cursor),
        .fix =
            "Append keys and values of the queries' tokens first, and attend to no more rows than the ring "
            "holds."};
  }
  return std::nullopt;
}

void AttentionCache::State::noteRead(CacheCursors::Recording& recording, const AttendedSequence& attended,
                                     uint64_t rows, const AttentionOptions& options) const {
  const CacheCursor cursor{.next = attended.length, .highest = std::max(attended.highest, attended.length)};
  const uint64_t oldest = cursors.slots().oldestKept(cursor), window = windowOf(options);
  const uint64_t firstRow = cursor.next - std::min(cursor.next, rows);
  const uint64_t begin = window == 0 ? oldest : std::max(oldest, firstRow + 1 - std::min(firstRow + 1, window));
  recording.read(begin, rows == 0 ? begin : cursor.next, static_cast<uint32_t>(attended.sequence), options.isCausal);
}

Result<void> AttentionCache::attend(CommandEncoder& encoder, const HeadsView& queries, const AttentionResults& results,
                                    const AttentionOptions& options, uint32_t sequence) const {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, queries, results, options, sequence](CommandEncoder& next) {
      return cache.attend(next, queries, results, options, sequence);
    };
  };
  return cacheCall(
      encoder, kAttend, again,
      [&]() -> Result<void> {
        MNK_TRY(checkTarget(kAttend, results));
        MNK_TRY(const uint32_t number, state_->cursors.numberOf(sequence));
        MNK_TRY(auto recording, State::join(state_, encoder, {&number, 1}));
        MNK_TRY(auto cursor, recording->known(number));
        const AttendedSequence attended = attendedBy(number, cursor);
        const SequenceRows entry{number, queries.resolved().tokens};
        const FlashDecode op = state_->attention(queries, results, options, {attended});
        if (const auto lost = state_->lostRows({&entry, 1}, {&attended, 1}, options)) {
          MNK_TRY(plan(op));  // its rules come first
          return *lost;
        }
        MNK_TRY(state_->checkRotated(kAttend, encoder, *recording, queries, {&entry, 1}, {&attended, 1}, options));
        MNK_TRY(encoder.encode(op));
        state_->noteRead(*recording, attended, entry.rows, options);
        return {};
      },
      true);
}

Result<void> AttentionCache::attend(CommandEncoder& encoder, const HeadsView& queries, const AttentionResults& results,
                                    const AttentionOptions& options, std::span<const uint32_t> sequences,
                                    std::span<const uint32_t> rowCounts) const {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, queries, results, options, listed = std::vector(sequences.begin(), sequences.end()),
            rows = std::vector(rowCounts.begin(), rowCounts.end())](CommandEncoder& next) {
      return cache.attend(next, queries, results, options, listed, rows);
    };
  };
  const bool isOne = sequences.size() == 1 && rowCounts.empty();
  return cacheCall(
      encoder, kAttend, again,
      [&]() -> Result<void> {
        MNK_TRY(checkTarget(kAttend, results));
        if (isOne) return attend(encoder, queries, results, options, sequences[0]);
        uint32_t only = 0;
        if (sequences.size() == 1) {
          MNK_TRY(only, state_->cursors.numberOf(sequences[0]));
          sequences = {&only, 1};
        }
        MNK_TRY(auto recording, State::join(state_, encoder, sequences));
        // All of the queries, before they are divided.
        MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = queries}, kAttend));
        MNK_TRY(auto entries, sequenceRows(queries, sequences, rowCounts));
        MNK_TRY(auto attended, attendedSequences(entries, options.isCausal,
                                                 [&](uint32_t sequence) { return recording->known(sequence); }));
        MNK_TRY(state_->checkRotated(kAttend, encoder, *recording, queries, entries, attended, options));
        MNK_TRY(checkOverlap(kAttend, {{"queries", rangeOf(queries)}}, results));
        const CallRows call = CallRows::of(entries);
        MNK_TRY(checkResults(kAttend, results, call, queries.resolved().heads, state_->descriptor.valueHeadDim));
        MNK_TRY(const auto op, state_->attentionOf(queries, results, options, call, entries, attended));
        if (const auto lost = state_->lostRows(entries, attended, options)) {
          if (op) MNK_TRY(plan(*op));  // its rules come first
          return *lost;
        }
        MNK_TRY(op ? encoder.encode(*op) : encoder.encode(Plan{.op = std::string(kAttend), .dispatches = {}}));
        for (size_t i = 0; i < entries.size(); ++i) {
          state_->noteRead(*recording, attended[i], entries[i].rows, options);
        }
        return {};
      },
      isOne);
}

}  // namespace mnk
