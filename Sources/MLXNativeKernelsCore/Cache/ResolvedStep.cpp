// Resolves a step: which sequences its rows belong to, at which positions, and whether they may be used there.
#include "Cache/AttentionCacheState.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "Cache/AttentionCacheRules.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/Common/RepeatedOps.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
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

namespace {

using Kind = ResolvedStep::Kind;

std::string_view callOf(Kind kind) {
  if (kind == Kind::appendAndAttend) return "AttentionCache.appendAndAttend";
  return kind == Kind::append ? "AttentionCache.append" : "AttentionCache.attend";
}

bool areDefaults(const AttentionOptions& options) {
  return numbersOf(options) == numbersOf(AttentionOptions()) && !options.mask && !options.slopes && !options.sinks;
}

// Refuses operands that the call does not use.
Result<void> checkUsed(const ResolvedStep& resolved) {
  const CacheStep& step = resolved.step;
  const bool isAttend = resolved.kind == Kind::attend, isAppend = resolved.kind == Kind::append;
  const std::pair<bool, std::string_view> unused[] = {
      {isAppend && step.queries.tensor, "queries"},
      {isAttend && step.keys.tensor, "keys"},
      {isAttend && step.values.tensor, "values"},
      {isAppend && (step.results.output || step.results.partials || step.results.logSumExp), "results"},
      {isAppend && !areDefaults(step.options), "options"},
      {isAppend && !step.after.empty(), "prefixes"},
      {resolved.kind != Kind::appendAndAttend && step.rotary, "rotation"}};
  for (const auto& [isGiven, name] : unused) {
    if (!isGiven) continue;
    return cacheError(fmt::format("{} takes no {}", isAppend ? "an append" : "attention alone", name),
                      std::string(name), "none", fmt::format("Leave {} out, or append and attend in one call.", name));
  }
  if (!step.results.partials) return {};
  return cacheError("attention over a cache does not give partials", "partials as the target", "a tensor for results",
                    "Pass caches with earlier tokens as prefixes. To merge parts yourself, use FlashDecode over the "
                    "cache's view, which takes the position of rows.");
}

// Positions of a cache do not count the tokens of prefixes.
Error followedAfterPrefixes() {
  return cacheError("rotary positions that follow a cache do not count prefixes",
                    "positions that follow a cache, and prefixes", "positions that count the tokens of prefixes",
                    "Leave the positions out: tokens are then rotated by their positions after the prefixes.");
}

// The keys of a latent cache are the RoPE part only, while its queries have that part after the latent part.
Error latentRotation(uint64_t latentDim) {
  return cacheError("a latent cache cannot rotate",
                    fmt::format("a rotary embedding, and a latent part of {}", latentDim),
                    "keys and queries that are rotated already",
                    "Rotate the keys and the last part of the queries with MultiRoPE, and leave `rotary` out.");
}

Error tooFewPositions(uint64_t rows, uint32_t sequence, uint64_t positions) {
  return cacheError("a sequence has fewer positions than queries",
                    fmt::format("{} of sequence {}, which has {}", countText(rows, "row"), sequence,
                                countText(positions, "position")),
                    "rows of tokens that were appended", "Append keys and values of the queries' tokens first.");
}

Error listedAgain(uint32_t sequence) {
  return cacheError("a sequence is listed again in attention that is not causal", fmt::format("sequence {}", sequence),
                    "each sequence once", "List the sequence once, with a row count for all of its rows.");
}

// Queries, keys and values are of the same tokens.
Result<void> checkTokens(const ResolvedStep& resolved) {
  const CacheStep& step = resolved.step;
  const HeadsView::Strides keys = step.keys.resolved();
  const bool isOne = step.sequences.size() == 1;
  for (const HeadsView* view : {&step.queries, &step.keys, &step.values}) {
    const HeadsView::Strides strides = view->resolved();
    if (strides.sequences == (isOne ? 1 : keys.sequences) && strides.totalTokens() == keys.totalTokens()) continue;
    const std::string tokens = countText(isOne ? keys.totalTokens() : keys.tokens, "token");
    return cacheError(
        isOne ? "queries, keys and values are not of the same tokens of one sequence"
              : "queries, keys and values are not of the same tokens",
        fmt::format("{} and {}", countText(strides.sequences, "sequence"), countText(strides.tokens, "token")),
        isOne ? fmt::format("{} of one sequence, as keys", tokens)
              : fmt::format("{} and {}, as keys", countText(keys.sequences, "sequence"), tokens),
        "Pass queries, keys and values of the same tokens, each with its own heads.");
  }
  return {};
}

// Each entry follows the one before it of the same sequence. Cursors are read once, because other threads may append in
// between.
Result<void> placeAppended(std::span<StepEntry> entries, CacheCursors::Recording& recording) {
  for (StepEntry& entry : entries) {
    if (entry.previous) {
      entry.before = entry.previous->after;
    } else {
      MNK_TRY(entry.before, recording.toAppend(entry.sequence));
    }
    entry.after = entry.before;
    entry.after.advanceTo(entry.before.next + std::min<uint64_t>(entry.rows, kMaxKVExtent));  // the rules refuse more
  }
  for (size_t i = entries.size(); i-- > 0;) {
    if (entries[i].previous) entries[i].previous->after.highest = entries[i].after.highest;
  }
  return {};
}

// Rows of an entry are older than those of a later one for the same sequence.
Result<void> placeAttending(std::span<StepEntry> entries, CacheCursors::Recording& recording) {
  for (size_t i = entries.size(); i-- > 0;) {
    StepEntry& entry = entries[i];
    if (entry.isLast) {
      MNK_TRY(const auto cursor, recording.known(entry.sequence));
      entry.after = {.next = cursor.next, .highest = cursor.highest};
    }
    if (entries.size() > 1 && entry.after.next == 0 && entry.rows != 0) {
      uint64_t rows = 0, positions = 0;  // with those of later entries
      for (const StepEntry& other : entries.subspan(i)) {
        if (other.sequence != entry.sequence) continue;
        rows += other.rows;
        positions = other.after.next;
      }
      return tooFewPositions(rows, entry.sequence, positions);
    }
    entry.before = {.next = entry.after.next - std::min(entry.after.next, entry.rows), .highest = entry.after.highest};
    if (entry.previous) entry.previous->after = entry.before;
  }
  return {};
}

}  // namespace

std::string_view ResolvedStep::call() const {
  return callOf(kind);
}

Result<void> AttentionCache::State::checkViews(const ResolvedStep& resolved) const {
  const CacheStep& step = resolved.step;
  if (resolved.appends()) {
    const KVCacheWrite stored{.keys = step.keys, .values = step.values, .into = storage.view()};
    MNK_TRY(checkRules(cacheSourceRules(), stored, resolved.call()));
  }
  if (resolved.attends()) MNK_TRY(checkRules(queryRules(), step.queries, resolved.call()));
  if (resolved.kind == Kind::appendAndAttend) MNK_TRY(checkTokens(resolved));
  if (resolved.rotary && descriptor.latentDim != 0) return latentRotation(descriptor.latentDim);
  return {};
}

// A single entry takes no allocation.
struct AttentionCache::State::Entries {
  StepEntry only = {};
  std::vector<StepEntry> listed = {};
};

Result<void> AttentionCache::State::resolveEntries(ResolvedStep& resolved, Entries& entries,
                                                   std::span<const uint32_t> sequences,
                                                   CacheCursors::Recording& recording) const {
  std::span<StepEntry> all(&entries.only, 1);
  if (resolved.isListed()) {
    MNK_TRY(checkViews(resolved));  // before rows are counted and listed one by one
    MNK_TRY(entries.listed, stepEntries(resolved.tokens(), sequences, resolved.step.rowCounts));
    all = entries.listed;
  } else {
    MNK_TRY(checkOneSequence(resolved.tokens()));
    entries.only.sequence = sequences[0];
    entries.only.rows = resolved.tokens().resolved().totalTokens();
  }
  resolved.entries = all;
  return resolved.appends() ? placeAppended(all, recording) : placeAttending(all, recording);
}

Result<void> AttentionCache::State::checkOperands(const ResolvedStep& resolved) const {
  const CacheStep& step = resolved.step;
  if (!resolved.isListed()) MNK_TRY(checkViews(resolved));
  if (!resolved.attends() || (!resolved.appends() && resolved.entries.size() == 1)) return {};  // one op checks it all
  std::vector<NamedRange> sources{{"queries", rangeOf(step.queries)}};
  std::vector<NamedRange> written;
  if (resolved.appends()) {
    sources.push_back({"keys", rangeOf(step.keys)});
    sources.push_back({"values", rangeOf(step.values)});
  }
  if (resolved.rotary) {
    MultiRoPE rotation;
    MNK_TRY(setRotation(rotation, resolved, resolved.whole()));
    MNK_TRY(checkRotation(rotation));
    // The dispatch reads queries and positions while it writes the cache.
    addNumbers(sources, *resolved.rotary);
    for (const auto& plane : storage.planes()) {
      if (plane) written.push_back({"the cache", plane->range()});
    }
  }
  MNK_TRY(checkOverlap(sources, step.results, std::move(written)));
  MNK_TRY(checkResults(step.results, RowCounts::of(resolved.entries), step.queries.resolved().heads,
                       descriptor.valueHeadDim));
  return checkListedOnce(resolved);
}

// Non-causal rows that see tokens after their own would need two lengths.
Result<void> AttentionCache::State::checkListedOnce(const ResolvedStep& resolved) {
  if (!resolved.attends() || resolved.step.options.isCausal) return {};
  for (const StepEntry& entry : resolved.entries) {
    for (const StepEntry* other = entry.previous; other && entry.rows != 0; other = other->previous) {
      if (other->rows != 0) return listedAgain(entry.sequence);
    }
  }
  return {};
}

Result<void> AttentionCache::State::checkRotated(const ResolvedStep& resolved, const CommandEncoder& encoder,
                                                 CacheCursors::Recording& recording,
                                                 std::optional<uint64_t> prefixTokens) const {
  const CacheStep& step = resolved.step;
  if (!resolved.appends() && !step.options.isCausal) return {};  // such rows have no positions
  if (!resolved.isListed()) MNK_TRY(checkViews(resolved));
  const UsedRows uses{resolved.call(), encoder, recording, cursors, placedRows(resolved.entries), descriptor.latentDim};
  if (resolved.rotary) {
    if (step.rotary->positions && step.rotary->positions->follows()) {
      MNK_TRY(uses.checkFollowed(*resolved.rotary->positions));
    }
    if (recording.hasRotated()) MNK_TRY(uses.checkEmbedding(hashOf(resolved.rotary->embedding)));
    MNK_TRY(uses.checkUnrotated(step.queries));
    return uses.checkUnrotated(step.keys);
  }
  if (prefixTokens) MNK_TRY(uses.checkOffsets(*prefixTokens));
  if (resolved.appends()) MNK_TRY(uses.checkKeys(step.keys));
  return resolved.attends() ? uses.checkQueries(step.queries) : Result<void>();
}

std::optional<Error> AttentionCache::State::lostRows(const ResolvedStep& resolved) const {
  const CacheSlots& slots = cursors.slots();
  for (const StepEntry& entry : resolved.entries) {
    const CacheCursor& cursor = entry.after;
    if (resolved.appends() || entry.rows == 0) continue;
    if (cursor.next == 0 || (!resolved.step.after.empty() && entry.rows > cursor.next)) {
      return tooFewPositions(entry.rows, entry.sequence, cursor.next);
    }
    const uint64_t oldest = slots.oldestKept(cursor);
    const bool isLost = resolved.step.options.isCausal
                            ? std::max(entry.before.next, slots.pinned) < std::min(oldest, cursor.next)
                            : slots.count(cursor) == 0;
    if (!isLost) continue;
    return cacheError("rows are of tokens that the ring has overwritten",
                      fmt::format("{} up to position {} of sequence {}", countText(entry.rows, "row"), cursor.next - 1,
                                  entry.sequence),
                      slots.heldText(cursor),
                      "Append keys and values of the queries' tokens first, and attend to no more rows than the ring "
                      "holds.");
  }
  return std::nullopt;
}

void AttentionCache::State::noteReads(const ResolvedStep& resolved, CacheCursors::Recording& recording) const {
  for (const StepEntry& entry : resolved.entries) {
    const uint64_t oldest = cursors.slots().oldestKept(entry.after), firstRow = entry.before.next;
    const uint64_t begin = resolved.window == 0
                               ? oldest
                               : std::max(oldest, firstRow + 1 - std::min<uint64_t>(firstRow + 1, resolved.window));
    recording.read(begin, entry.rows == 0 ? begin : entry.after.next, entry.sequence, resolved.step.options.isCausal);
  }
}

Result<void> AttentionCache::State::call(const AttentionCache& cache, Kind kind, CommandEncoder& encoder,
                                         const CacheStep& step) {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache, kind, step](CommandEncoder& next) { return call(cache, kind, next, step); };
  };
  return cacheCall(
      encoder, callOf(kind), again, [&] { return run(cache.state_, kind, encoder, step); }, true);
}

Result<void> AttentionCache::State::run(const std::shared_ptr<State>& self, Kind kind, CommandEncoder& encoder,
                                        const CacheStep& step) {
  ResolvedStep resolved{.kind = kind, .step = step, .rotary = step.rotary ? &*step.rotary : nullptr};
  MNK_TRY(checkUsed(resolved));
  resolved.window = step.options.window == 0 ? self->ownWindow() : step.options.window;
  const PositionSource* const source =
      step.rotary && step.rotary->positions ? step.rotary->positions->follows() : nullptr;
  std::optional<RotaryStep> followed;
  if (source && !step.after.empty()) return followedAfterPrefixes();
  if (source) {
    followed = step.rotary;
    MNK_TRY(followed->positions, source->resolve(encoder, step.queries, nullptr, step.sequences.size() > 1));
    resolved.rotary = &*followed;
  }
  uint32_t only = 0;
  if (step.sequences.size() == 1) {
    MNK_TRY(only, self->cursors.numberOf(step.sequences[0]));
  }
  const std::span<const uint32_t> sequences =
      step.sequences.size() == 1 ? std::span<const uint32_t>(&only, 1) : step.sequences;
  MNK_TRY(auto recording, join(self, encoder, sequences));
  Entries entries;
  MNK_TRY(self->resolveEntries(resolved, entries, sequences, *recording));
  for (const StepEntry& entry : resolved.entries) recording->useEmbedding(entry.sequence, std::nullopt);
  if (!step.after.empty()) {
    MNK_TRY(self->encodeAfterPrefixes(encoder, *recording, resolved));
  } else {
    // Rotations of an earlier step of the encoder are not known row by row.
    if (!resolved.rotary && recording->hasRotated()) (void)encoder.makeRotatedRows();
    if (source || recording->hasRotated() || encoder.rotatedRows())
      MNK_TRY(self->checkRotated(resolved, encoder, *recording));
    MNK_TRY(self->encode(encoder, resolved));
  }
  if (!resolved.appends()) {
    self->noteReads(resolved, *recording);
    return {};
  }
  const auto own = resolved.rotary ? std::optional(hashOf(resolved.rotary->embedding)) : std::nullopt;
  for (const StepEntry& entry : resolved.entries) {
    recording->advanceTo(entry.after.next, entry.sequence);
    const auto embedding = own ? own : recording->keyEmbedding(entry.sequence);
    if (embedding && entry.rows != 0) recording->noteRotated(entry.sequence, *embedding);
  }
  if (source) source->recorded(encoder, nullptr);
  const auto* const rotary = resolved.rotary;
  const bool hasTensor = rotary && rotary->offsets && std::holds_alternative<Tensor>(*rotary->offsets);
  if (!source && rotary && rotary->positions && rotary->positions->areNumbers() && !hasTensor) {
    encoder.noteFixedPositions();
  }
  encoder.noteAppend();
  return {};
}

}  // namespace mnk
