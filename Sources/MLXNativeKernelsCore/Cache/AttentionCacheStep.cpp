// A step of a cache in one call: rotate, append, attend. Processes all tokens at once if that gives the same results as
// one token at a time, and otherwise in chunks that fit the ring.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "Cache/AttendedRows.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Cache/RotatedTokens.hpp"
#include "Cache/StepRotation.hpp"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"
#include "Ops/FlashDecode/RepeatedAttention.hpp"
#include "Ops/KVCacheQuantize/RepeatedQuantize.hpp"
#include "Ops/KVCacheWrite/RepeatedWrite.hpp"
#include "Ops/MultiRoPE/RepeatedRotation.hpp"
#include "Ops/RotaryAppend/RepeatedRotaryAppend.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr std::string_view kCall = "AttentionCache.appendAndAttend";

using Cursors = std::map<uint32_t, CacheCursor>;

// Of `tokens` tokens, the first `first` have already been stored.
Error ringTooSmallError(const CacheSlots& slots, const CacheCursor& cursor, uint64_t window, uint64_t first,
                        uint64_t tokens) {
  const std::string got =
      fmt::format("token {} of {}, whose window of {} reaches positions that a ring of {} has overwritten", first,
                  tokens, window, slots.capacity);
  // A larger ring would not bring back what this one has overwritten.
  if (window <= slots.capacity - slots.pinned) {
    return {.op = std::string(kCall),
            .what = "the window reaches positions that the sequence has lost",
            .got = fmt::format("{}; it is at position {} and holds {}", got, cursor.next, slots.heldText(cursor)),
            .expected = fmt::format("a window of at most {}, or position {} or later",
                                    cursor.next + 1 - slots.oldestKept(cursor), slots.oldestKept(cursor) + window - 1),
            .fix = std::string(kAfterLongRollback)};
  }
  // A capacity at which nothing is overwritten.
  const uint64_t never = std::max(cursor.highest, cursor.next + tokens - first);
  return {.op = std::string(kCall),
          .what = "the ring is too small for the window",
          .got = got,
          .expected = fmt::format("a capacity of at least {}", std::min(slots.pinned + window, never)),
          .fix = "Make the ring that large, or pass a smaller window."};
}

// A call that is divided into more chunks than a few: how many, and what avoids it.
std::string chunksWarning(const AttentionCacheDescriptor& d, uint64_t tokens, uint64_t chunks, uint64_t window) {
  constexpr uint64_t kFewChunks = 8;
  if (chunks <= kFewChunks) return {};
  const std::string divided = fmt::format("{} divided {} into {} chunks", kCall, countText(tokens, "token"), chunks);
  if (window == 0) {
    return divided +
           ", because a full ring without a window takes one token at a time; pass a window, or a capacity "
           "that holds all tokens";
  }
  if (d.slidingWindow && window == d.slidingWindow->window) {
    return divided + fmt::format("; a SlidingWindow with more than {} maxRows takes fewer", d.slidingWindow->maxRows);
  }
  return divided + fmt::format("; a ring of more than {} slots takes fewer", d.capacity);
}

// Without causality, a row would see newer tokens of its own chunk but not of later chunks.
Error nonCausalChunksError(uint64_t tokens, uint64_t chunk) {
  return {.op = std::string(kCall),
          .what = "attention that is not causal cannot be divided into chunks",
          .got = fmt::format("{}, of which the ring can serve {} at once", countText(tokens, "token"), chunk),
          .expected = "causal attention, or tokens that the ring can serve at once",
          .fix = "Make the ring larger, or append and attend to fewer tokens at a time."};
}

// Positions of a cache do not count the tokens of prefixes.
Error followedAfterPrefixes() {
  return {.op = std::string(kCall),
          .what = "rotary positions that follow a cache do not count prefixes",
          .got = "positions that follow a cache, and prefixes",
          .expected = "positions that count the tokens of prefixes",
          .fix = "Leave the positions out: tokens are then rotated by their positions after the prefixes."};
}

// The keys of a latent cache are the RoPE part only, while its queries have that part after the latent part.
Error latentRotationError(uint64_t latentDim) {
  return {.op = std::string(kCall),
          .what = "a latent cache cannot rotate",
          .got = fmt::format("a rotary embedding, and a latent part of {}", latentDim),
          .expected = "keys and queries that are rotated already",
          .fix = "Rotate the keys and the last part of the queries with MultiRoPE, and leave `rotary` out."};
}

Error sequencesGivenTwice(const AppendAndAttend& step) {
  return {
      .op = std::string(kCall),
      .what = "sequences are given twice",
      .got = fmt::format("sequence {}, and a list of {}", step.sequence, countText(step.sequences.size(), "sequence")),
      .expected = "one of both",
      .fix = "Leave `sequence` out, or `sequences`."};
}

Result<void> checkTokens(const AppendAndAttend& step) {
  const HeadsView::Strides keys = step.keys.resolved();
  const bool isOne = step.sequences.empty();
  for (const HeadsView* view : {&step.queries, &step.keys, &step.values}) {
    const HeadsView::Strides strides = view->resolved();
    if (strides.sequences == (isOne ? 1 : keys.sequences) && strides.totalTokens() == keys.totalTokens()) continue;
    const std::string tokens = countText(isOne ? keys.totalTokens() : keys.tokens, "token");
    return Error{
        .op = std::string(kCall),
        .what = isOne ? "queries, keys and values are not of the same tokens of one sequence"
                      : "queries, keys and values are not of the same tokens",
        .got = fmt::format("{} and {}", countText(strides.sequences, "sequence"), countText(strides.tokens, "token")),
        .expected = isOne ? fmt::format("{} of one sequence, as keys", tokens)
                          : fmt::format("{} and {}, as keys", countText(keys.sequences, "sequence"), tokens),
        .fix = "Pass queries, keys and values of the same tokens, each with its own heads."};
  }
  return {};
}

// The entries of a list that is short enough for one append. Checks what the form of its ops does not show: that the
// views and results fit one another before they are divided among entries.
Result<std::vector<SequenceRows>> listedRows(const AppendAndAttend& step, uint64_t valueHeadDim) {
  MNK_TRY(checkTokens(step));
  MNK_TRY(auto entries, sequenceRows(step.keys, step.sequences, step.rowCounts));
  const CallRows call = CallRows::of(entries);
  MNK_TRY(checkResults(kCall, step.results, call, step.queries.resolved().heads, valueHeadDim));
  if (call.total > KVCacheWrite::kMaxRows) entries.clear();
  return entries;
}

// The append and the attention of a step as one repeated op.
class RepeatedStep final : public RepeatedOp {
 public:
  // `fresh` plans all of it, and checks every rule.
  RepeatedStep(RepeatedOp& stored, RepeatedOp& attention, const std::function<Result<Plan>()>& fresh)
      : stored_(stored), attention_(attention), fresh_(fresh) {}

  std::string_view name() const override { return kCall; }
  Result<Plan> plan(Device*) const override { return fresh_(); }
  bool describe(OpForm& form) const override {
    form.add(kCall);
    if (!stored_.describe(form)) return false;
    form.beginStage();
    return attention_.describe(form);
  }
  void addPositions(OpPositions& positions) const override {
    stored_.addPositions(positions);
    attention_.addPositions(positions);
  }
  Result<void> refine(Device& device, OpForm& form) override {
    MNK_TRY(stored_.refine(device, form));
    return attention_.refine(device, form);
  }
  void patch(size_t index, Dispatch& dispatch) const override {
    return index == 0 ? stored_.patch(0, dispatch) : attention_.patch(index - 1, dispatch);
  }
  uint32_t stageOf(size_t index) const override { return index == 0 ? 0 : 1; }

 private:
  RepeatedOp& stored_;
  RepeatedOp& attention_;
  const std::function<Result<Plan>()>& fresh_;
};

// The positions in the order in which RepeatedStep adds them.
OpPositions positionsOf(const AppendAndAttend& step, uint32_t sequence, const CacheCursor& from,
                        const CacheCursor& after) {
  OpPositions positions;
  positions.add(sequence, from.next);
  if (step.rotary) {
    if (step.rotary->positions)
      addNumbers(positions, *step.rotary->positions);
    else
      positions.add(from.next);
    addNumbers(positions, step.rotary->offsets);
  }
  addAttended(positions, attendedBy(sequence, after));
  return positions;
}

}  // namespace

struct AttentionCache::State::StepOps {
  std::vector<CacheStorage::Append> appends;  // several for a list that is too long for one
  std::optional<MultiRoPE> rotation = {};
  uint64_t firstToken = 0;                    // of these tokens in a tensor of positions
  std::optional<FlashDecode> attention = {};  // none: there are no rows

  // Where the first dispatch stores rotated queries.
  std::optional<ScratchQueries> rotatedQueries() const {
    if (!rotation) return std::nullopt;
    return ScratchQueries{.bytes = rotatedQueryBytes(rotation->queries)};
  }

  Result<Plan> planStored() const { return planAppends(appends, rotation, firstToken); }
  Result<Plan> planAttention(Device* device) const {
    if (!attention) return Plan{.op = std::string(kCall), .dispatches = {}};
    return RepeatedAttention(*attention, rotatedQueries()).plan(device);
  }

  // Encodes one append and the attention by patching the plan of an earlier step, or else what `fresh` plans.
  Result<void> encode(CommandEncoder& encoder, const std::function<Result<Plan>()>& fresh) const {
    RepeatedAttention attending(*attention, rotatedQueries());
    const auto repeat = [&](auto stored) {
      RepeatedStep repeated(stored, attending, fresh);
      return encoder.repeat(repeated);
    };
    const CacheStorage::Append& append = appends.front();
    if (rotation) {
      const RotaryAppend rotated{.rotation = *rotation, .firstToken = firstToken, .append = append};
      return repeat(RepeatedRotaryAppend(rotated));
    }
    const auto* write = std::get_if<KVCacheWrite>(&append);
    return write ? repeat(RepeatedWrite(*write)) : repeat(RepeatedQuantize(std::get<KVCacheQuantize>(append)));
  }
};

// The common case: tokens of one sequence, all stored before the first of them attends.
Result<void> AttentionCache::State::repeatStep(CommandEncoder& encoder, const AppendAndAttend& step, uint32_t sequence,
                                               const CacheCursor& from,
                                               const std::function<Result<Plan>()>& fresh) const {
  const uint64_t tokens = step.keys.resolved().totalTokens();
  CacheCursor cursor = from;
  cursor.advanceTo(from.next + tokens);
  MNK_TRY(const bool isRecorded, encoder.repeatAt(positionsOf(step, sequence, from, cursor)));
  if (isRecorded) return {};
  StepOps ops{.appends = {storage.append(step.keys, step.values, sequence, from.next)},
              .attention = attention(step.queries, step.results, step.options, {attendedBy(sequence, cursor)})};
  if (step.rotary) ops.rotation = rotationOf(step, 0, tokens, from.next);
  return ops.encode(encoder, fresh);
}

// Plans one sequence, in chunks. `firstToken` is the index of the step's first token in a tensor of positions.
Result<Plan> AttentionCache::State::planChunks(const std::shared_ptr<Device>& device, const AppendAndAttend& step,
                                               uint64_t firstToken, CacheCursor& cursor) const {
  const uint64_t tokens = step.keys.resolved().totalTokens();
  const CallRows call{.total = tokens, .entries = 1, .rows = tokens};
  const CacheSlots& slots = cursors.slots();
  const uint64_t window = windowOf(step.options);
  Plan whole{.op = std::string(kCall), .dispatches = {}};
  uint64_t chunks = 0;
  for (uint64_t first = 0, chunk; first < tokens; first += chunk, ++chunks) {
    chunk = slots.exactChunk(cursor, tokens - first, window);
    if (chunk == 0 && window < kMaxKVExtent) return ringTooSmallError(slots, cursor, window, first, tokens);
    if (chunk == 0) chunk = tokens - first;  // the rules of attention refuse the window
    if (step.options.mask && chunk != tokens) return dividedMask();
    if (!step.options.isCausal && chunk != tokens) return nonCausalChunksError(tokens, chunk);
    const auto part = [&](const HeadsView& view) { return runsOf(view, first, chunk, 1); };
    StepOps ops{.appends = {storage.append(part(step.keys), part(step.values), step.sequence, cursor.next)},
                .firstToken = firstToken + first};
    if (step.rotary) ops.rotation = rotationOf(step, first, chunk, cursor.next);
    MNK_TRY(auto stored, ops.planStored());
    whole.append(std::move(stored));
    MNK_TRY(checkPositions(step.sequence, cursor.next + chunk));
    cursor.advanceTo(cursor.next + chunk);
    MNK_TRY(auto results, resultsOf(step.results, call, first, chunk, 1));
    ops.attention = attention(part(step.queries), results, step.options, {attendedBy(step.sequence, cursor)});
    MNK_TRY(auto attended, ops.planAttention(device.get()));
    whole.append(std::move(attended));
  }
  whole.warning = chunksWarning(descriptor, tokens, chunks, window);
  return whole;
}

bool AttentionCache::State::areAtOnce(const AppendAndAttend& step, std::span<const SequenceRows> entries,
                                      const std::map<uint32_t, CacheCursor>& at) const {
  if (entries.size() < 2 || (step.rotary && !canRotateAtOnce(step, CallRows::of(entries)))) return false;
  std::map<uint32_t, uint64_t> rows;
  for (const auto& [sequence, count] : entries) rows[sequence] += count;
  const uint64_t window = windowOf(step.options);
  return std::all_of(rows.begin(), rows.end(), [&](const auto& entry) {
    return cursors.slots().exactChunk(at.at(entry.first), entry.second, window) == entry.second;
  });
}

Result<AttentionCache::State::StepOps> AttentionCache::State::opsOf(const AppendAndAttend& step,
                                                                    std::optional<MultiRoPE> rotation,
                                                                    std::span<const SequenceRows> entries,
                                                                    std::map<uint32_t, CacheCursor>& cursors) const {
  std::map<uint32_t, uint64_t> next;
  for (const auto& [sequence, cursor] : cursors) next.emplace(sequence, cursor.next);
  MNK_TRY(const auto rows, rowSlots(entries, next));
  for (auto& [sequence, cursor] : cursors) cursor.advanceTo(next[sequence]);
  MNK_TRY(const auto attended,
          attendedSequences(entries, step.options.isCausal,
                            [&](uint32_t sequence) -> Result<CacheCursor> { return cursors[sequence]; }));
  const CallRows call = CallRows::of(entries);
  MNK_TRY(auto attention, attentionOf(step.queries, step.results, step.options, call, entries, attended));
  const bool takesRuns = rotation && call.rows != 0;  // a rotation has a sequence for each entry
  const HeadsView values = takesRuns ? runsOf(step.values, 0, call.rows, call.entries) : step.values;
  return StepOps{
      .appends = storage.appendRows(rotation ? *rotation->keys : step.keys, values, rows.sequences, rows.slots),
      .rotation = std::move(rotation),
      .attention = std::move(attention)};
}

// Encodes a list by patching the plan of an earlier step if all entries can be stored and attend at once. Whether the
// call is valid follows from that plan, except for what does not belong to its form.
Result<void> AttentionCache::State::encodeEntries(CommandEncoder& encoder, const AppendAndAttend& step,
                                                  Cursors& cursors) const {
  const Cursors before = cursors;
  const auto fresh = [&]() -> Result<Plan> {
    cursors = before;
    return planStep(encoder.device(), step, cursors);
  };
  const auto entries = listedRows(step, descriptor.valueHeadDim);
  if (!entries || !areAtOnce(step, *entries, cursors)) return encoder.encode(fresh());
  std::optional<MultiRoPE> rotation;
  if (step.rotary) {
    auto whole = rotationOf(step, *entries, cursors);
    if (!whole) return encoder.encode(fresh());
    rotation = *std::move(whole);
  }
  const auto ops = opsOf(step, std::move(rotation), *entries, cursors);
  if (!ops || !ops->attention || ops->appends.size() != 1) return encoder.encode(fresh());
  return ops->encode(encoder, fresh);
}

// Entry after entry, each in chunks.
Result<Plan> AttentionCache::State::planEntries(const std::shared_ptr<Device>& device, const AppendAndAttend& step,
                                                std::span<const SequenceRows> entries,
                                                std::map<uint32_t, CacheCursor>& cursors) const {
  const CallRows call = CallRows::of(entries);
  Plan whole{.op = std::string(kCall), .dispatches = {}};
  uint64_t firstRow = 0;
  for (size_t i = 0; i < entries.size(); firstRow += entries[i++].rows) {
    const auto [sequence, rows] = entries[i];
    if (rows == 0) continue;
    if (step.options.mask && rows != call.total) return dividedMask();
    AppendAndAttend one = step;
    one.sequence = sequence;
    for (HeadsView* view : {&one.queries, &one.keys, &one.values}) *view = runsOf(*view, firstRow, rows, 1);
    MNK_TRY(auto results, resultsOf(step.results, call, firstRow, rows, 1));
    one.results = std::move(results);
    if (step.rotary) MNK_TRY(takeEntry(*one.rotary, i, firstRow, rows));
    MNK_TRY(auto planned, planChunks(device, one, firstRow, cursors[sequence]));
    whole.append(std::move(planned));
  }
  return whole;
}

Result<void> AttentionCache::appendAndAttend(CommandEncoder& encoder, const AppendAndAttend& given) {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, given](CommandEncoder& next) mutable { return cache.appendAndAttend(next, given); };
  };
  return cacheCall(
      encoder, kCall, again,
      [&]() -> Result<void> {
        if (given.sequence != kOnlySequence && !given.sequences.empty()) return sequencesGivenTwice(given);
        std::optional<AppendAndAttend> resolved;
        const PositionSource* const source =
            given.rotary && given.rotary->positions ? given.rotary->positions->follows() : nullptr;
        if (source && !given.after.empty()) return followedAfterPrefixes();
        if (source) {
          resolved = given;
          MNK_TRY(resolved->rotary->positions,
                  source->resolve(encoder, given.queries, nullptr, given.sequences.size() > 1));
        }
        const AppendAndAttend& step = resolved ? *resolved : given;
        MNK_TRY(checkTarget(kCall, step.results));
        const bool isOne = step.sequences.empty();
        uint32_t only = 0;
        if (isOne) {
          MNK_TRY(only, state_->cursors.numberOf(step.sequence));
        }
        const std::span<const uint32_t> listed = isOne ? std::span(&only, 1) : std::span(step.sequences);
        MNK_TRY(auto recording, State::join(state_, encoder, listed));
        Cursors cursors;
        const auto look = [&]() -> Result<void> {
          for (const uint32_t sequence : listed) {
            if (cursors.contains(sequence)) continue;  // read each cursor once: other threads may append in between
            MNK_TRY(auto known, recording->toAppend(sequence));
            cursors.emplace(sequence, known);
          }
          return {};
        };
        const bool mayBeRotated = source || encoder.rotatedRows();
        const auto checkRotations = [&](const Cursors& at) -> Result<void> {
          MNK_TRY(const auto entries, state_->checkedEntries(step, at));
          std::map<uint32_t, uint64_t> next;
          for (const auto& [sequence, cursor] : at) next.emplace(sequence, cursor.next);
          const UsedRows uses{kCall,
                              encoder,
                              *recording,
                              state_->cursors,
                              placedRows(entries, std::move(next)),
                              state_->descriptor.latentDim};
          if (source) MNK_TRY(uses.checkFollowed(*step.rotary->positions));
          if (step.rotary) {
            MNK_TRY(uses.checkUnrotated(step.queries));
            return uses.checkUnrotated(step.keys);
          }
          MNK_TRY(uses.checkKeys(step.keys));
          return uses.checkQueries(step.queries);
        };
        const auto recorded = [&]() -> Result<void> {
          if (source) source->recorded(encoder, nullptr);
          const bool hasTensor =
              step.rotary && step.rotary->offsets && std::holds_alternative<Tensor>(*step.rotary->offsets);
          if (!source && step.rotary && step.rotary->positions && step.rotary->positions->areNumbers() && !hasTensor) {
            encoder.noteFixedPositions();
          }
          encoder.noteAppend();
          return {};
        };
        if (isOne && step.rowCounts.empty() && step.after.empty()) {
          MNK_TRY(auto cursor, recording->toAppend(only));
          const uint64_t tokens = step.keys.resolved().totalTokens(), window = state_->windowOf(step.options);
          const bool isWhole = tokens < kMaxKVExtent && cursor.next + tokens < kMaxKVExtent &&
                               state_->cursors.slots().exactChunk(cursor, tokens, window) == tokens;
          if (isWhole) {
            if (mayBeRotated) MNK_TRY(checkRotations({{only, cursor}}));
            const auto fresh = [&]() -> Result<Plan> {
              cursors.emplace(only, cursor);
              return state_->planStep(encoder.device(), step, cursors);
            };
            MNK_TRY(state_->repeatStep(encoder, step, only, cursor, std::ref(fresh)));
            recording->advanceTo(cursor.next + tokens, only);
            return recorded();
          }
        }
        MNK_TRY(look());
        if (mayBeRotated) MNK_TRY(checkRotations(cursors));
        MNK_TRY(step.after.empty() ? state_->encodeEntries(encoder, step, cursors)
                                   : state_->encodeStepAfter(encoder, *recording, step, cursors));
        for (const auto& [sequence, cursor] : cursors) recording->advanceTo(cursor.next, sequence);
        return recorded();
      },
      true);
}

Result<std::vector<SequenceRows>> AttentionCache::State::checkedEntries(
    const AppendAndAttend& step, const std::map<uint32_t, CacheCursor>& cursors) const {
  const bool isOne = step.sequences.empty();
  const uint32_t only = cursors.empty() ? 0 : cursors.begin()->first;
  const KVCacheWrite stored{.keys = step.keys, .values = step.values, .into = storage.view()};
  MNK_TRY(checkRules(cacheSourceRules(), stored, kCall));
  MNK_TRY(checkRules(queryRules(), FlashDecode{.queries = step.queries}, kCall));
  MNK_TRY(checkTokens(step));
  if (step.rotary && descriptor.latentDim != 0) return latentRotationError(descriptor.latentDim);
  if (isOne && step.rowCounts.empty()) return std::vector{SequenceRows{only, step.keys.resolved().totalTokens()}};
  return sequenceRows(step.keys, isOne ? std::span(&only, 1) : std::span(step.sequences), step.rowCounts);
}

// All of a call.
Result<Plan> AttentionCache::State::planStep(const std::shared_ptr<Device>& device, const AppendAndAttend& step,
                                             std::map<uint32_t, CacheCursor>& cursors) const {
  MNK_TRY(const auto entries, checkedEntries(step, cursors));
  const CallRows call = CallRows::of(entries);
  std::vector<NamedRange> sources{
      {"queries", rangeOf(step.queries)}, {"keys", rangeOf(step.keys)}, {"values", rangeOf(step.values)}};
  std::vector<NamedRange> written;
  std::optional<MultiRoPE> rotation;
  if (step.rotary) {
    MNK_TRY(rotation, rotationOf(step, entries, cursors));
    MNK_TRY(checkRotation(*rotation));
    // The dispatch reads queries and positions while it writes the cache.
    addNumbers(sources, *step.rotary);
    for (const auto& plane : storage.planes()) {
      if (plane) written.push_back({"the cache", plane->range()});
    }
  }
  MNK_TRY(checkOverlap(kCall, sources, step.results, std::move(written)));
  MNK_TRY(checkResults(kCall, step.results, call, step.queries.resolved().heads, descriptor.valueHeadDim));
  if (!step.options.isCausal) {
    std::set<uint32_t> listed;
    for (const auto& [sequence, count] : entries) {
      if (count != 0 && !listed.insert(sequence).second) return listedAgain(sequence);
    }
  }
  if (!areAtOnce(step, entries, cursors)) return planEntries(device, step, entries, cursors);
  MNK_TRY(const auto ops, opsOf(step, std::move(rotation), entries, cursors));
  Plan whole{.op = std::string(kCall), .dispatches = {}};
  MNK_TRY(auto stored, ops.planStored());
  whole.append(std::move(stored));
  MNK_TRY(auto attended, ops.planAttention(device.get()));
  whole.append(std::move(attended));
  return whole;
}

}  // namespace mnk
