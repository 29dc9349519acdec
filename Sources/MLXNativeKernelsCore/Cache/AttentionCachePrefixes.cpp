// Attention and steps of sequences that continue prefixes in other caches.
#include <map>
#include <vector>

#include "Cache/PrefixedAttention.hpp"
#include "Cache/RotatedTokens.hpp"
#include "Cache/StepRotation.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr std::string_view kPrefixedAttend = "AttentionCache.attend";
constexpr std::string_view kStep = "AttentionCache.appendAndAttend";

// Plans the rotation of a step's queries and keys into scratch memory, and makes the step use them. `next` are the
// positions of the next tokens.
Result<Plan> takeRotated(AppendAndAttend& step, std::span<const SequenceRows> entries,
                         std::map<uint32_t, CacheCursor> next, ScratchTensors& scratch) {
  Plan whole{.op = std::string(kStep), .dispatches = {}};
  if (!step.rotary) return whole;
  AppendAndAttend rotated = step;
  rotated.rotary.reset();
  for (HeadsView* view : {&rotated.queries, &rotated.keys}) {
    const HeadsView::Strides axes = view->resolved();
    const uint64_t extents[] = {axes.sequences, axes.tokens, axes.heads, axes.headDim};
    MNK_TRY(auto tensor, scratch.make(view->tensor.dtype(), extents));
    *view = HeadsView(std::move(tensor));
  }
  const auto add = [&](MultiRoPE rotation, uint64_t first, uint64_t rows, uint64_t count) -> Result<void> {
    const bool isWhole = rows == 0;
    rotation.rotatedQueries = isWhole ? rotated.queries : runsOf(rotated.queries, first, rows, count);
    rotation.rotatedKeys = isWhole ? rotated.keys : runsOf(rotated.keys, first, rows, count);
    MNK_TRY(auto planned, plan(rotation));
    whole.append(std::move(planned));
    return {};
  };
  const CallRows call = CallRows::of(entries);
  MNK_TRY(auto rotation, rotationOf(step, entries, next));
  if (entries.size() == 1 || canRotateAtOnce(step, call)) {
    MNK_TRY(add(std::move(rotation), 0, call.rows, call.entries));
    step = std::move(rotated);
    return whole;
  }
  uint64_t first = 0;
  for (size_t i = 0; i < entries.size(); first += entries[i++].rows) {
    const auto [sequence, rows] = entries[i];
    if (rows == 0) continue;
    AppendAndAttend one = step;
    for (HeadsView* view : {&one.queries, &one.keys}) *view = runsOf(*view, first, rows, 1);
    MNK_TRY(takeEntry(*one.rotary, i, first, rows));
    CacheCursor& cursor = next[sequence];
    MNK_TRY(add(rotationOf(one, 0, rows, cursor.next), first, rows, 1));
    cursor.next += rows;
  }
  step = std::move(rotated);
  return whole;
}

}  // namespace

Result<void> AttentionCache::attend(CommandEncoder& encoder, const HeadsView& queries, const AttentionResults& results,
                                    const AttentionOptions& options, std::span<const uint32_t> sequences,
                                    std::span<const uint32_t> rowCounts, std::span<const CachePrefix> after) const {
  if (after.empty()) return attend(encoder, queries, results, options, sequences, rowCounts);
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, queries, results, options, listed = std::vector(sequences.begin(), sequences.end()),
            rows = std::vector(rowCounts.begin(), rowCounts.end()), prefixes = std::vector(after.begin(), after.end())](
               CommandEncoder& next) { return cache.attend(next, queries, results, options, listed, rows, prefixes); };
  };
  return cacheCall(encoder, kPrefixedAttend, again, [&]() -> Result<void> {
    MNK_TRY(checkTarget(kPrefixedAttend, results));
    uint32_t only = 0;
    if (sequences.size() == 1) {
      MNK_TRY(only, state_->cursors.numberOf(sequences[0]));
      sequences = {&only, 1};
    }
    MNK_TRY(auto recording, State::join(state_, encoder, sequences));
    MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = queries}, kPrefixedAttend));
    MNK_TRY(auto entries, sequenceRows(queries, sequences, rowCounts));
    MNK_TRY(auto attended, attendedSequences(entries, options.isCausal,
                                             [&](uint32_t sequence) { return recording->known(sequence); }));
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto [sequence, rows] = entries[i];
      if (rows > attended[i].length) return tooFewPositions(rows, sequence, {.next = attended[i].length});
    }
    const CallRows call = CallRows::of(entries);
    const uint64_t heads = queries.resolved().heads;
    MNK_TRY(checkResults(kPrefixedAttend, results, call, heads, state_->descriptor.valueHeadDim));
    MNK_TRY(auto prefixed,
            State::PrefixedAttention::make(kPrefixedAttend, encoder, *state_, after, entries, results, options));
    MNK_TRY(state_->checkRotated(kPrefixedAttend, encoder, *recording, queries, entries, attended, options,
                                 prefixed.length()));
    MNK_TRY(prefixed.checkMemory({{"queries", rangeOf(queries)}}));
    if (call.total == 0) return {};
    std::vector<uint64_t> starts;
    for (size_t i = 0; i < entries.size(); ++i) {
      starts.push_back(attended[i].length - std::min(attended[i].length, entries[i].rows));
    }
    MNK_TRY(auto part, prefixed.makeParts(heads));
    MNK_TRY(auto whole, prefixed.planPrefixes(encoder.device(), queries, starts));
    MNK_TRY(auto own,
            state_->planAttendRows(encoder.device(), queries, part, prefixed.partOptions(), call, entries, attended));
    whole.append(std::move(own));
    MNK_TRY(prefixed.finish(whole));
    if (const auto lost = state_->lostRows(entries, attended, options)) return *lost;
    MNK_TRY(encoder.encode(whole));
    for (size_t i = 0; i < entries.size(); ++i) {
      state_->noteRead(*recording, attended[i], entries[i].rows, options);
    }
    prefixed.noteReads();
    return {};
  });
}

Result<void> AttentionCache::State::encodeStepAfter(CommandEncoder& encoder, CacheCursors::Recording& recording,
                                                    const AppendAndAttend& step,
                                                    std::map<uint32_t, CacheCursor>& cursors) const {
  MNK_TRY(const auto entries, checkedEntries(step, cursors));
  const CallRows call = CallRows::of(entries);
  const uint64_t heads = step.queries.resolved().heads;
  MNK_TRY(checkResults(kStep, step.results, call, heads, descriptor.valueHeadDim));
  MNK_TRY(auto prefixed,
          PrefixedAttention::make(kStep, encoder, *this, step.after, entries, step.results, step.options));
  std::vector<NamedRange> sources{
      {"queries", rangeOf(step.queries)}, {"keys", rangeOf(step.keys)}, {"values", rangeOf(step.values)}};
  if (step.rotary) addNumbers(sources, *step.rotary);
  MNK_TRY(prefixed.checkMemory(std::move(sources)));
  if (call.total == 0) return {};
  AppendAndAttend own = step;
  own.after.clear();
  own.options = prefixed.partOptions();
  MNK_TRY(auto part, prefixed.makeParts(heads));
  own.results = std::move(part);
  if (!step.rotary) {
    std::vector<PlacedRows> placed;
    for (const auto& [sequence, rows] : entries) placed.push_back({.sequence = sequence, .rows = rows});
    const UsedRows uses{kStep, encoder, recording, this->cursors, std::move(placed)};
    MNK_TRY(uses.checkOffsets(prefixed.length()));
  }
  std::map<uint32_t, CacheCursor> next = cursors;
  std::vector<uint64_t> starts;
  for (const auto& [sequence, rows] : entries) {
    starts.push_back(next[sequence].next);
    next[sequence].next += rows;
  }
  next = cursors;
  for (auto& [sequence, cursor] : next) cursor.next += prefixed.length();
  MNK_TRY(auto whole, takeRotated(own, entries, std::move(next), prefixed.scratch()));
  MNK_TRY(auto prefixes, prefixed.planPrefixes(encoder.device(), own.queries, starts));
  whole.append(std::move(prefixes));
  MNK_TRY(auto stored, planStep(encoder.device(), own, cursors));
  whole.append(std::move(stored));
  MNK_TRY(prefixed.finish(whole));
  whole.hasFixedPositions = false;  // each run of a recording plans again
  MNK_TRY(encoder.encode(whole));
  prefixed.noteReads();
  return {};
}

}  // namespace mnk
