// Attention over a cache is FlashDecode over its memory, at the lengths that an encoder sees.
#include <map>
#include <vector>

#include "Cache/AttentionCacheState.hpp"
#include "Cache/SequenceRows.hpp"
#include "Cache/StepRotation.hpp"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/Overlap.hpp"
#include "Ops/FlashDecode/AttentionResultRules.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr std::string_view kAttend = "AttentionCache.attend";

// The rows of a call, as they are divided among sequences: `rows` of each of `entries`, or 0 where counts differ.
struct CallRows {
  uint64_t total = 0;
  uint64_t entries = 0;
  uint64_t rows = 0;
};

// The part of a result that rows from `first` on have, as the result of `count` sequences of `rows` rows. Its last
// `innerAxes` axes are those of one row; those before are one of all rows, or those of entries and their rows. Another
// tensor stays as it is, for the rules to refuse.
Result<void> takeRows(Tensor& tensor, uint32_t innerAxes, const CallRows& call, uint64_t first, uint64_t rows,
                      uint64_t count) {
  const auto extents = tensor.shape().extents();
  if (extents.size() <= innerAxes) return {};
  const auto outer = extents.first(extents.size() - innerAxes);
  const std::vector<uint64_t> inner(extents.end() - innerAxes, extents.end());
  const bool hasAll = outer.size() == 1 && outer[0] == call.total;
  const bool hasEntries = outer.size() == 2 && call.rows != 0 && outer[0] == call.entries && outer[1] == call.rows;
  if (!hasAll && !hasEntries) return {};
  const auto reshaped = [&](std::initializer_list<uint64_t> axes) -> Result<void> {
    std::vector<uint64_t> all(axes);
    all.insert(all.end(), inner.begin(), inner.end());
    MNK_TRY(auto shape, Shape::make(all));
    MNK_TRY(auto made, tensor.reshaped(shape));
    tensor = std::move(made);
    return {};
  };
  MNK_TRY(reshaped({call.total}));
  MNK_TRY(auto part, tensor.slice(first, rows * count));
  tensor = std::move(part);
  return reshaped({count, rows});
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

// All results, before they are divided: of rows one after another, or of entries and their rows.
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

// Each part of a call is checked by itself; results of one part must not be what another one reads.
Result<void> checkOverlap(std::string_view call, const std::vector<NamedRange>& sources,
                          const AttentionResults& results, std::vector<NamedRange> targets = {}) {
  addTargets(targets, results);
  const auto overlap = firstOverlap(sources, targets);
  if (!overlap) return {};
  return Error{.op = std::string(call),
               .what = "operands share memory",
               .got = overlap->text(),
               .expected = "separate memory",
               .fix = "Write results to memory of their own."};
}

// A sequence as rows see it that `rowsBehind` newer tokens follow.
AttendedSequence attendedBy(uint32_t sequence, const CacheCursor& cursor, uint64_t rowsBehind = 0) {
  const uint64_t length = cursor.next - std::min(cursor.next, rowsBehind);
  return {.sequence = sequence, .length = length, .highest = cursor.highest > length ? cursor.highest : 0};
}

// Rows of an entry are older than those of a later one for the same sequence.
Result<std::vector<AttendedSequence>> attendedSequences(std::span<const SequenceRows> entries, bool isCausal,
                                                        CacheCursors::Recording& recording) {
  std::vector<AttendedSequence> attended(entries.size());
  struct Listed {
    CacheCursor cursor;  // looked at once, since others may append meanwhile
    uint64_t rowsBehind = 0;
  };
  std::map<uint32_t, Listed> listed;
  for (size_t i = entries.size(); i-- > 0;) {
    const auto [sequence, rows] = entries[i];
    auto found = listed.find(sequence);
    if (found == listed.end()) {
      MNK_TRY(auto known, recording.known(sequence));
      found = listed.emplace(sequence, Listed{.cursor = known}).first;
    }
    const CacheCursor& cursor = found->second.cursor;
    uint64_t& behind = found->second.rowsBehind;
    // Rows that see tokens behind their own would need both lengths.
    if (behind != 0 && rows != 0 && !isCausal) {
      return Error{.op = std::string(kAttend),
                   .what = "a sequence is listed again in attention that is not causal",
                   .got = fmt::format("sequence {}", sequence),
                   .expected = "each sequence once",
                   .fix = "List the sequence once, with a row count for all of its rows."};
    }
    if (cursor.next != 0 && cursor.next <= behind && rows != 0) {
      return Error{.op = std::string(kAttend),
                   .what = "a sequence has fewer positions than queries",
                   .got = fmt::format("{} of sequence {}, which has {}", countText(behind + rows, "row"), sequence,
                                      countText(cursor.next, "position")),
                   .expected = "rows of tokens that were appended",
                   .fix = "Append keys and values of the queries' tokens first."};
    }
    attended[i] = attendedBy(sequence, cursor, behind);
    behind += rows;
  }
  return attended;
}

Error dividedMask() {
  return {.op = std::string(kAttend),
          .what = "a mask cannot be divided among calls of FlashDecode",
          .got = "a mask, and rows that attend in several parts",
          .expected = "a mask for rows that attend at once",
          .fix = "Attend without a mask, or to each sequence or chunk by itself."};
}

// `first` of `tokens` tokens were stored before.
Error tooSmallRing(const CacheSlots& slots, const CacheCursor& cursor, uint64_t window, uint64_t first,
                   uint64_t tokens) {
  const uint64_t takenBack = std::max<uint64_t>(cursor.highest - cursor.next, 1) - 1;
  const uint64_t never = std::max(cursor.highest, cursor.next + tokens - first);  // enough to overwrite nothing
  return {.op = std::string(kAttend),
          .what = "the ring is too small for the window",
          .got = fmt::format("token {} of {}, whose window of {} reaches positions that a ring of {} has overwritten",
                             first, tokens, window, slots.capacity),
          .expected = fmt::format("a capacity of at least {}", std::min(slots.pinned + window + takenBack, never)),
          .fix = "Make the ring that large, or pass a smaller window."};
}

// A row would see the newer ones of its own chunk alone.
Error dividedRows(uint64_t tokens, uint64_t chunk) {
  return {.op = std::string(kAttend),
          .what = "attention that is not causal cannot be divided into chunks",
          .got = fmt::format("{}, of which the ring can serve {} at once", countText(tokens, "token"), chunk),
          .expected = "causal attention, or tokens that the ring can serve at once",
          .fix = "Make the ring larger, or append and attend to fewer tokens at a time."};
}

}  // namespace

FlashDecode AttentionCache::State::attention(const HeadsView& queries, const AttentionResults& results,
                                             const AttentionOptions& options,
                                             std::vector<AttendedSequence> attended) const {
  FlashDecode op{.queries = queries, .over = storage.view(), .sequences = std::move(attended), .results = results};
  if (const auto& quantized = storage.quantizedView()) op.over = *quantized;
  op.options = options;
  op.options.window = windowOf(options);
  return op;
}

Result<Plan> AttentionCache::State::planAttend(const std::shared_ptr<Device>& device, const HeadsView& queries,
                                               const AttentionResults& results, const AttentionOptions& options,
                                               std::vector<AttendedSequence> attended,
                                               const std::optional<ScratchQueries>& rotated) const {
  const FlashDecode op = attention(queries, results, options, std::move(attended));
  if (rotated) return plan(op, *rotated, device.get());
  return device ? plan(op, *device) : plan(op);
}

void AttentionCache::State::noteRead(CacheCursors::Recording& recording, const AttendedSequence& attended,
                                     uint64_t rows, const AttentionOptions& options) const {
  const CacheCursor cursor{.next = attended.length, .highest = std::max(attended.highest, attended.length)};
  const uint64_t oldest = cursors.slots().oldestKept(cursor), window = windowOf(options);
  const uint64_t firstRow = cursor.next - std::min(cursor.next, rows);
  const uint64_t begin = window == 0 ? oldest : std::max(oldest, firstRow + 1 - std::min(firstRow + 1, window));
  recording.read(begin, rows == 0 ? begin : cursor.next, static_cast<uint32_t>(attended.sequence));
}

Result<void> AttentionCache::attend(CommandEncoder& encoder, const HeadsView& queries, const AttentionResults& results,
                                    const AttentionOptions& options, uint32_t sequence) const {
  return guardedAs(kAttend, [&]() -> Result<void> {
    MNK_TRY(auto recording, CacheCursors::join({state_, &state_->cursors}, encoder, {&sequence, 1}));
    MNK_TRY(auto cursor, recording->known(sequence));
    const AttendedSequence attended = attendedBy(sequence, cursor);
    auto planned = state_->planAttend(encoder.device(), queries, results, options, {attended});
    MNK_TRY(encoder.encode(planned));
    state_->noteRead(*recording, attended, queries.resolved().tokens, options);
    return {};
  });
}

Result<void> AttentionCache::attend(CommandEncoder& encoder, const HeadsView& queries, const AttentionResults& results,
                                    const AttentionOptions& options, std::span<const uint32_t> sequences,
                                    std::span<const uint32_t> rowCounts) const {
  return guardedAs(kAttend, [&]() -> Result<void> {
    MNK_TRY(auto recording, CacheCursors::join({state_, &state_->cursors}, encoder, sequences));
    // All of the queries, before they are divided.
    MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = queries}, kAttend));
    MNK_TRY(auto entries, sequenceRows(queries, sequences, rowCounts));
    MNK_TRY(auto attended, attendedSequences(entries, options.isCausal, *recording));
    MNK_TRY(checkOverlap(kAttend, {{"queries", rangeOf(queries)}}, results));
    CallRows call{.entries = entries.size()};
    for (const SequenceRows& entry : entries) call.total += entry.rows;
    const bool isUniform = !entries.empty() && call.total == entries.front().rows * call.entries;
    call.rows = isUniform ? entries.front().rows : 0;
    MNK_TRY(checkResults(kAttend, results, call, queries.resolved().heads, state_->descriptor.valueHeadDim));
    // Neighbors with as many rows attend together.
    Plan whole{.op = std::string(FlashDecode::name), .dispatches = {}};
    uint64_t firstRow = 0;
    for (size_t begin = 0, end; begin < entries.size(); begin = end) {
      const uint64_t rows = entries[begin].rows;
      for (end = begin + 1; end < entries.size() && entries[end].rows == rows;) ++end;
      if (rows == 0) continue;
      if (options.mask && rows * (end - begin) != call.total) return dividedMask();
      MNK_TRY(auto part, resultsOf(results, call, firstRow, rows, end - begin));
      MNK_TRY(auto planned, state_->planAttend(encoder.device(), runsOf(queries, firstRow, rows, end - begin), part,
                                               options, {attended.begin() + begin, attended.begin() + end}));
      whole.append(std::move(planned));
      firstRow += rows * (end - begin);
    }
    MNK_TRY(encoder.encode(whole));
    for (size_t i = 0; i < entries.size(); ++i) {
      state_->noteRead(*recording, attended[i], entries[i].rows, options);
    }
    return {};
  });
}

Result<void> AttentionCache::appendAndAttend(CommandEncoder& encoder, const AppendAndAttend& step) {
  constexpr std::string_view kCall = "AttentionCache.appendAndAttend";
  return guardedAs(kCall, [&]() -> Result<void> {
    MNK_TRY(auto recording, CacheCursors::join({state_, &state_->cursors}, encoder, {&step.sequence, 1}));
    MNK_TRY(auto known, recording->known(step.sequence));
    CacheCursor cursor = known;
    // All of them, before they are divided.
    const KVCacheWrite stored{.keys = step.keys, .values = step.values, .into = state_->storage.view()};
    MNK_TRY(checkRules(cacheSourceRules(), stored, kCall));
    MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = step.queries}, kCall));
    const uint64_t tokens = step.keys.resolved().totalTokens();
    for (const HeadsView* view : {&step.queries, &step.keys, &step.values}) {
      const HeadsView::Strides strides = view->resolved();
      if (strides.sequences == 1 && strides.tokens == tokens) continue;
      return Error{
          .op = std::string(kCall),
          .what = "queries, keys and values are not of the same tokens of one sequence",
          .got = fmt::format("{} and {}", countText(strides.sequences, "sequence"), countText(strides.tokens, "token")),
          .expected = fmt::format("{} of one sequence, as keys", countText(tokens, "token")),
          .fix = "Pass queries, keys and values of the same tokens, each with its own heads."};
    }
    std::vector<NamedRange> sources{
        {"queries", rangeOf(step.queries)}, {"keys", rangeOf(step.keys)}, {"values", rangeOf(step.values)}};
    std::vector<NamedRange> written;
    if (step.rotary) {
      MNK_TRY(checkRotation(rotationOf(step, 0, tokens, cursor.next)));
      // Queries and positions are read while the cache is written.
      addNumbers(sources, *step.rotary);
      for (const auto& plane : state_->storage.planes()) {
        if (plane) written.push_back({"the cache", plane->range()});
      }
    }
    MNK_TRY(checkOverlap(kCall, sources, step.results, std::move(written)));
    const CallRows call{.total = tokens, .entries = 1, .rows = tokens};
    MNK_TRY(checkResults(kCall, step.results, call, step.queries.resolved().heads, state_->descriptor.valueHeadDim));
    const CacheSlots& slots = state_->cursors.slots();
    const uint64_t window = state_->windowOf(step.options);
    Plan whole{.op = std::string(kCall), .dispatches = {}};
    for (uint64_t first = 0, chunk; first < tokens; first += chunk) {
      chunk = slots.exactChunk(cursor, tokens - first, window);
      if (chunk == 0 && window < kMaxKVExtent) return tooSmallRing(slots, cursor, window, first, tokens);
      if (chunk == 0) chunk = tokens - first;  // the rules of attention refuse the window
      if (step.options.mask && chunk != tokens) return dividedMask();
      if (!step.options.isCausal && chunk != tokens) return dividedRows(tokens, chunk);
      const auto part = [&](const HeadsView& view) { return runsOf(view, first, chunk, 1); };
      std::optional<ScratchQueries> rotated;
      if (step.rotary) {
        const MultiRoPE rotation = rotationOf(step, first, chunk, cursor.next);
        rotated = ScratchQueries{.bytes = rotatedQueryBytes(rotation.queries)};
        MNK_TRY(auto stored,
                state_->storage.planRotaryAppend(rotation, first, part(step.values), step.sequence, cursor.next));
        whole.append(std::move(stored));
      } else {
        MNK_TRY(auto stored,
                state_->storage.planAppend(part(step.keys), part(step.values), step.sequence, cursor.next));
        whole.append(std::move(stored));
      }
      MNK_TRY(checkPositions(step.sequence, cursor.next + chunk));
      cursor.advanceTo(cursor.next + chunk);
      MNK_TRY(auto results, resultsOf(step.results, call, first, chunk, 1));
      MNK_TRY(auto attended, state_->planAttend(encoder.device(), part(step.queries), results, step.options,
                                                {attendedBy(step.sequence, cursor)}, rotated));
      whole.append(std::move(attended));
    }
    MNK_TRY(encoder.encode(whole));
    recording->advanceTo(cursor.next, step.sequence);
    return {};
  });
}

}  // namespace mnk
