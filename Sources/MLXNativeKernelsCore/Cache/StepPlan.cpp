// Plans and encodes steps. All rows are stored before the first of them attends if that gives the same results as one
// token at a time; otherwise entries follow one another, in chunks that fit the ring.
#include <algorithm>
#include <functional>
#include <map>
#include <variant>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Ops/Common/CacheAddressing.hpp"
#include "Ops/Common/RepeatedOps.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// A slice of valid positions.
RotaryPositions positionsFrom(const RotaryPositions& all, const StepPart& part) {
  const uint64_t tokens = part.entries.front().rows;
  // A number counts up in each entry.
  if (const auto* number = std::get_if<int64_t>(&all.source)) {
    return *number + static_cast<int64_t>(part.firstRow - part.entryRow);
  }
  const auto* list = std::get_if<RotaryPositions::List>(&all.source);
  if (!list) return all;
  const uint64_t perAxis = list->numbers.size() / list->axes;
  std::vector<int32_t> numbers;
  for (uint64_t axis = 0; axis < list->axes; ++axis) {
    const auto begin = list->numbers.begin() + static_cast<int64_t>(axis * perAxis + part.firstRow);
    numbers.insert(numbers.end(), begin, begin + static_cast<int64_t>(tokens));
  }
  return {std::move(numbers), list->axes};
}

Result<RotaryOffsets> offsetOf(const RotaryOffsets& offsets, size_t entry) {
  if (const auto* list = std::get_if<std::vector<int32_t>>(&offsets)) {
    return RotaryOffsets(std::vector<int32_t>{list->at(entry)});
  }
  const auto& all = std::get<Tensor>(offsets);
  MNK_TRY(auto shape, Shape::make({all.shape().elementCount()}));
  MNK_TRY(auto flat, all.reshaped(shape));
  MNK_TRY(auto one, flat.slice(entry, 1));
  return RotaryOffsets(std::move(one));
}

// Offsets belong to entries, but the kernel indexes them by sequence of a view, and all sequences of a view have the
// same number of tokens.
Error offsetsOfUnevenRows(uint64_t entries) {
  return {.op = std::string(kCacheName),
          .what = "offsets are given for sequences that differ in their rows",
          .got = fmt::format("offsets, and other row counts for some of {}", countText(entries, "sequence")),
          .expected = "the same number of rows for each sequence, or no offsets",
          .fix = "Add the offsets to positions, and pass these for each token."};
}

// A position for each token of several entries: counted up from `first` in each, or the token's position in the cache.
RotaryPositions listedPositions(std::span<const StepEntry> entries, const int64_t* first, uint64_t prefixTokens) {
  std::vector<int32_t> positions;
  positions.reserve(RowCounts::of(entries).total);
  for (const StepEntry& entry : entries) {
    int64_t position = first ? *first : static_cast<int64_t>(entry.before.next + prefixTokens);
    for (uint64_t row = 0; row < entry.rows; ++row) positions.push_back(static_cast<int32_t>(position++));
  }
  return RotaryPositions(std::move(positions));
}

}  // namespace

Result<void> setRotation(MultiRoPE& rotation, const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens) {
  const RotaryStep& rotary = *step.rotary;
  const RowCounts rows = RowCounts::of(part.entries);
  if (rotary.offsets && !rows.areEqual()) return offsetsOfUnevenRows(rows.entries);
  const auto view = [&](const HeadsView& all) {
    return part.entries.size() == 1 || rows.rows == 0 ? part.viewOf(all) : runsOf(all, 0, rows.rows, rows.entries);
  };
  rotation.queries = view(step.step.queries);
  rotation.keys = view(step.step.keys);
  rotation.rotary = rotary.embedding;
  rotation.positions = rotationPositions(step, part, prefixTokens);
  rotation.offsets = rotary.offsets;
  if (!part.isWhole && rotary.offsets && step.entries.size() > 1) {
    MNK_TRY(rotation.offsets, offsetOf(*rotary.offsets, part.entry));
  }
  return {};
}

RotaryPositions rotationPositions(const ResolvedStep& step, const StepPart& part, uint64_t prefixTokens) {
  const auto& given = step.rotary->positions;
  if (given && !part.isWhole) return positionsFrom(*given, part);
  const RowCounts rows = RowCounts::of(part.entries);
  const auto* number = given ? std::get_if<int64_t>(&given->source) : nullptr;
  if (part.entries.size() == 1) return given ? *given : part.entries.front().before.next + prefixTokens;
  if (!canRotateAtOnce(step)) return given.value_or(RotaryPositions());
  if (given && (!number || rows.areEqual())) return *given;
  const auto total = static_cast<int64_t>(rows.total);
  if (given && (*number < INT32_MIN || *number > INT32_MAX - total)) return *given;  // the rules refuse it
  return listedPositions(part.entries, number, prefixTokens);
}

bool canRotateAtOnce(const ResolvedStep& step) {
  const RowCounts rows = RowCounts::of(step.entries);
  const auto& positions = step.rotary->positions;
  const bool isListed =
      rows.entries > 1 && (!positions || (std::holds_alternative<int64_t>(positions->source) && rows.rows == 0));
  return !isListed || rows.total <= MultiRoPE::kMaxListed;
}

void addNumbers(std::vector<NamedRange>& sources, const RotaryStep& rotary) {
  const auto* positions = rotary.positions ? std::get_if<Tensor>(&rotary.positions->source) : nullptr;
  const auto* offsets = rotary.offsets ? std::get_if<Tensor>(&*rotary.offsets) : nullptr;
  if (positions) sources.push_back({"positions", positions->range()});
  if (offsets) sources.push_back({"offsets", offsets->range()});
}

namespace {

// Of `tokens` tokens, the first `first` have already been stored.
Error ringTooSmall(const CacheSlots& slots, const CacheCursor& cursor, uint64_t window, uint64_t first,
                   uint64_t tokens) {
  const std::string got =
      fmt::format("token {} of {}, whose window of {} reaches positions that a ring of {} has overwritten", first,
                  tokens, window, slots.capacity);
  // A larger ring would not bring back what this one has overwritten.
  if (window <= slots.capacity - slots.pinned) {
    return cacheError("the window reaches positions that the sequence has lost",
                      fmt::format("{}; it is at position {} and holds {}", got, cursor.next, slots.heldText(cursor)),
                      fmt::format("a window of at most {}, or position {} or later",
                                  cursor.next + 1 - slots.oldestKept(cursor), slots.oldestKept(cursor) + window - 1),
                      kAfterLongRollback);
  }
  // A capacity at which nothing is overwritten.
  const uint64_t never = std::max(cursor.highest, cursor.next + tokens - first);
  return cacheError("the ring is too small for the window", got,
                    fmt::format("a capacity of at least {}", std::min(slots.pinned + window, never)),
                    "Make the ring that large, or pass a smaller window.");
}

// A call that is divided into more chunks than a few: how many, and what avoids it.
std::string chunksWarning(const ResolvedStep& step, const AttentionCacheDescriptor& d, uint64_t tokens,
                          uint64_t chunks) {
  constexpr uint64_t kFewChunks = 8;
  if (chunks <= kFewChunks) return {};
  const std::string divided =
      fmt::format("{} divided {} into {} chunks", step.call(), countText(tokens, "token"), chunks);
  if (step.window == 0) {
    return divided +
           ", because a full ring without a window takes one token at a time; pass a window, or a capacity "
           "that holds all tokens";
  }
  if (d.slidingWindow && step.window == d.slidingWindow->window) {
    return divided + fmt::format("; a SlidingWindow with more than {} maxRows takes fewer", d.slidingWindow->maxRows);
  }
  return divided + fmt::format("; a ring of more than {} slots takes fewer", d.capacity);
}

// Without causality, a row would see newer tokens of its own chunk but not of later chunks.
Error nonCausalChunks(uint64_t tokens, uint64_t chunk) {
  return cacheError("attention that is not causal cannot be divided into chunks",
                    fmt::format("{}, of which the ring can serve {} at once", countText(tokens, "token"), chunk),
                    "causal attention, or tokens that the ring can serve at once",
                    "Make the ring larger, or append and attend to fewer tokens at a time.");
}

Error dividedMask() {
  return cacheError("a mask cannot be divided among calls of FlashDecode",
                    "a mask, and rows that attend in several parts", "a mask for rows that attend at once",
                    "Attend without a mask, or to each sequence or chunk by itself.");
}

Error unevenMask() {
  return cacheError("masks are not supported with unequal row counts", "a mask, and row counts that differ",
                    "the same number of rows of each sequence",
                    "Remove the mask, or pass sequences with equal row counts.");
}

Error fullError(uint32_t sequence, uint64_t position, const KVCacheView& view) {
  return cacheError("the sequence is full", fmt::format("sequence {} at position {}", sequence, position),
                    fmt::format("less than capacity {}", view.capacity()),
                    "Grow the cache or let it overwrite the oldest, or truncate the sequence.");
}

// Converts to what a function returns, so that a container constructs it in place.
template <typename Make>
struct MadeBy {
  Make make;
  operator decltype(std::declval<Make>()())() const { return make(); }
};

// The append, the attention, or both, as one repeated op.
class RepeatedStep final : public RepeatedOp {
 public:
  // `planWhole` plans all of it, and checks every rule.
  RepeatedStep(const ResolvedStep& step, RepeatedOp* stored, RepeatedOp* attention,
               const std::function<Result<Plan>()>& planWhole)
      : step_(step), stored_(stored), attention_(attention), planWhole_(planWhole) {}

  std::string_view name() const override { return step_.call(); }
  Result<Plan> plan(Device*) const override { return planWhole_(); }
  bool describe(OpForm& form) const override {
    form.add(step_.call());
    // The attention of a list has no entries without rows, and results of another shape.
    if (step_.entries.size() > 1) {
      const RowCounts rows = RowCounts::of(step_.entries);
      for (const uint64_t count : {rows.entries, rows.rows, rows.total}) form.add(count);
      form.add(step_.step.results.output);
      form.add(step_.step.results.logSumExp);
    }
    if (stored_ && !stored_->describe(form)) return false;
    form.beginStage();
    return !attention_ || attention_->describe(form);
  }
  void addPositions(OpPositions& positions) const override {
    if (stored_) stored_->addPositions(positions);
    if (attention_) attention_->addPositions(positions);
  }
  Result<void> refine(Device& device, OpForm& form) override {
    if (stored_) MNK_TRY(stored_->refine(device, form));
    return attention_ ? attention_->refine(device, form) : Result<void>();
  }
  void patch(size_t index, Dispatch& dispatch) const override {
    if (stageOf(index) == 0) return stored_->patch(0, dispatch);
    attention_->patch(stored_ ? index - 1 : index, dispatch);
  }
  // The append is one dispatch.
  uint32_t stageOf(size_t index) const override { return stored_ && index == 0 ? 0 : 1; }

 private:
  const ResolvedStep& step_;
  RepeatedOp* stored_;
  RepeatedOp* attention_;
  const std::function<Result<Plan>()>& planWhole_;
};

// The positions of a step whose rows are stored at once, in the order in which RepeatedStep adds them.
OpPositions positionsOf(const ResolvedStep& step, const KVCacheView& view) {
  OpPositions positions;
  const bool isListed = step.entries.size() > 1;
  if (step.appends() && !isListed) positions.add(step.entries.front().sequence, step.entries.front().before.next);
  if (step.appends() && isListed) {
    for (const StepEntry& entry : step.entries) {
      for (uint64_t row = 0; row < entry.rows; ++row) positions.add(entry.sequence);
    }
    for (const StepEntry& entry : step.entries) {
      for (uint64_t at = entry.before.next; at < entry.after.next; ++at) positions.add(view.slotOf(at));
    }
  }
  if (step.rotary) {
    addNumbers(positions, rotationPositions(step, step.whole()));
    addNumbers(positions, step.rotary->offsets);
  }
  if (!step.attends()) return positions;
  for (const StepEntry& entry : step.entries) {
    if (entry.rows != 0 || !isListed) addAttended(positions, entry.attended());
  }
  return positions;
}

}  // namespace

// The ops of rows that are all stored before the first of them attends.
struct AttentionCache::State::StepOps {
  std::optional<CacheStorage::Append> append = {};
  std::vector<CacheStorage::Append> furtherAppends = {};  // of a list that is too long for one
  std::optional<MultiRoPE> rotation = {};
  uint64_t firstToken = 0;                    // of these tokens in a tensor of positions
  std::optional<FlashDecode> attention = {};  // none: no rows attend

  // Where the append stores rotated queries.
  std::optional<ScratchQueries> rotatedQueries() const {
    if (!rotation) return std::nullopt;
    return ScratchQueries{.bytes = rotatedQueryBytes(rotation->queries)};
  }

  Result<Plan> plan(std::string_view call, std::span<const StepEntry> entries, Device* device) const {
    Plan whole{.op = std::string(call), .dispatches = {}};
    if (append) {
      MNK_TRY(auto stored, planAppends({&*append, 1}, rotation, firstToken));
      whole.append(std::move(stored));
      if (!furtherAppends.empty()) {
        MNK_TRY(auto further, planAppends(furtherAppends, rotation, firstToken));
        whole.append(std::move(further));
      }
      for (const StepEntry& entry : entries) MNK_TRY(checkPositions(entry.sequence, entry.after.next));
    }
    if (!attention) return whole;
    MNK_TRY(auto attended, RepeatedAttention(*attention, rotatedQueries()).plan(device));
    whole.append(std::move(attended));
    return whole;
  }

  // Patches the plan of an earlier step, or else encodes what `planWhole` plans.
  Result<void> encode(CommandEncoder& encoder, const ResolvedStep& step,
                      const std::function<Result<Plan>()>& planWhole) const {
    std::optional<RepeatedAttention> attending;
    if (attention) attending.emplace(*attention, rotatedQueries());
    const auto repeat = [&](RepeatedOp* stored) {
      RepeatedStep repeated(step, stored, attending ? &*attending : nullptr, planWhole);
      return encoder.repeat(repeated);
    };
    if (!append) return repeat(nullptr);
    if (rotation) {
      RepeatedRotaryAppend stored(*rotation, firstToken, *append);
      return repeat(&stored);
    }
    if (const auto* write = std::get_if<KVCacheWrite>(&*append)) {
      RepeatedWrite stored(*write);
      return repeat(&stored);
    }
    RepeatedQuantize stored(std::get<KVCacheQuantize>(*append));
    return repeat(&stored);
  }
};

FlashDecode AttentionCache::State::attention(const HeadsView& queries, const AttentionResults& results,
                                             const AttentionOptions& options,
                                             std::vector<AttendedSequence> attended) const {
  FlashDecode op{.queries = queries,
                 .cache = storage.attended(),
                 .sequences = std::move(attended),
                 .results = results,
                 .options = options};
  if (!results.partials) return op;
  // The part of the rows' own cache, beside those of prefixes.
  for (AttendedSequence& each : op.sequences) {
    const uint64_t rows = each.rows != 0 ? each.rows : queries.resolved().tokens;
    if (!each.position) each.position = static_cast<int64_t>(each.length - rows);
  }
  return op;
}

Result<std::optional<FlashDecode>> AttentionCache::State::attentionOf(const HeadsView& queries,
                                                                      const AttentionResults& results,
                                                                      const AttentionOptions& options,
                                                                      const RowCounts& call,
                                                                      std::vector<AttendedSequence> attended) const {
  std::erase_if(attended, [](const AttendedSequence& each) { return each.rows == 0; });
  if (attended.empty()) return std::optional<FlashDecode>();
  const uint64_t rows = attended.front().rows, count = attended.size();
  const bool isEven = std::ranges::all_of(attended, [&](const auto& each) { return each.rows == rows; });
  if (!isEven && options.mask) return unevenMask();
  if (!isEven) return std::optional(attention(queries, results, options, std::move(attended)));
  for (AttendedSequence& each : attended) each.rows = 0;
  MNK_TRY(auto shaped, resultsOf(results, call, 0, rows, count));
  return std::optional(attention(runsOf(queries, 0, rows, count), shaped, options, std::move(attended)));
}

Result<void> AttentionCache::State::makeOps(StepOps& ops, const ResolvedStep& resolved, const StepPart& part) const {
  const CacheStep& step = resolved.step;
  const StepEntry& first = part.entries.front();
  const RowCounts rows = RowCounts::of(part.entries);
  const bool isListed = part.entries.size() > 1;
  ops.firstToken = part.firstRow;
  if (resolved.rotary) {
    MNK_TRY(setRotation(ops.rotation.emplace(), resolved, part));
  }
  // The common case makes the ops in place, because they are large.
  if (resolved.appends() && !isListed && part.isWhole) {
    ops.append.emplace(
        MadeBy{[&] { return storage.append(step.keys, step.values, first.sequence, first.before.next); }});
  } else if (resolved.appends() && !isListed) {
    ops.append = storage.append(part.viewOf(step.keys), part.viewOf(step.values), first.sequence, first.before.next);
  } else if (resolved.appends()) {
    std::vector<uint32_t> sequences, slots;
    const KVCacheView& view = storage.view();
    for (const StepEntry& entry : part.entries) {
      for (uint64_t position = entry.before.next; position < entry.after.next; ++position) {
        if (view.wrap == KVWrap::linear && position >= view.capacity()) {
          return fullError(entry.sequence, position, view);
        }
        sequences.push_back(entry.sequence);
        // Passes the slot as the position, because a slot always fits in the 32 bits of a row.
        slots.push_back(static_cast<uint32_t>(view.slotOf(position)));
      }
    }
    const bool takesRuns = ops.rotation && rows.rows != 0;  // a rotation has a sequence for each entry
    ops.furtherAppends =
        storage.appendRows(ops.rotation ? *ops.rotation->keys : step.keys,
                           takesRuns ? runsOf(step.values, 0, rows.rows, rows.entries) : step.values, sequences, slots);
    ops.append = std::move(ops.furtherAppends.front());
    ops.furtherAppends.erase(ops.furtherAppends.begin());
  }
  if (!resolved.attends()) return {};
  if (!isListed && part.isWhole) {
    ops.attention.emplace(
        MadeBy{[&] { return attention(step.queries, step.results, step.options, {first.attended()}); }});
    ops.attention->options.window = resolved.window;
    return {};
  }
  AttentionOptions options = step.options;
  options.window = resolved.window;
  if (!isListed) {
    MNK_TRY(auto results, resultsOf(step.results, RowCounts::of(resolved.entries), part.firstRow, rows.total, 1));
    ops.attention = attention(part.viewOf(step.queries), results, options, {first.attended()});
    return {};
  }
  std::vector<AttendedSequence> attended;
  for (const StepEntry& entry : part.entries) {
    attended.push_back(entry.attended());
    attended.back().rows = entry.rows;
  }
  MNK_TRY(ops.attention, attentionOf(step.queries, step.results, options, rows, std::move(attended)));
  return {};
}

bool AttentionCache::State::isAtOnce(const ResolvedStep& step) const {
  if (step.kind != ResolvedStep::Kind::appendAndAttend) return true;
  if (step.rotary && !canRotateAtOnce(step)) return false;
  const auto fits = [&](const CacheCursor& before, uint64_t rows) {
    return cursors.slots().exactChunk(before, rows, step.window) == rows;
  };
  return std::ranges::all_of(step.entries, [&](const StepEntry& entry) {
    if (!entry.isLast) return true;
    uint64_t rows = entry.rows;
    const StepEntry* first = &entry;
    for (; first->previous; rows += first->rows) first = first->previous;
    return fits(first->before, rows);
  });
}

Result<Plan> AttentionCache::State::planDivided(const std::shared_ptr<Device>& device, const ResolvedStep& step) const {
  Plan whole{.op = std::string(step.call()), .dispatches = {}};
  std::map<uint32_t, CacheCursor> known;
  StepPart part{.isWhole = false};
  const uint64_t total = RowCounts::of(step.entries).total;
  for (const StepEntry& entry : step.entries) {
    CacheCursor& cursor = known.try_emplace(entry.sequence, entry.before).first->second;
    uint64_t chunks = 0;
    for (uint64_t done = 0, rows; done < entry.rows; done += rows, ++chunks) {
      rows = cursors.slots().exactChunk(cursor, entry.rows - done, step.window);
      if (rows == 0 && step.window < kMaxKVExtent) {
        return ringTooSmall(cursors.slots(), cursor, step.window, done, entry.rows);
      }
      if (rows == 0) rows = entry.rows - done;  // the rules of attention refuse the window
      if (step.step.options.mask && rows != total) return dividedMask();
      if (!step.step.options.isCausal && rows != entry.rows) return nonCausalChunks(entry.rows, rows);
      StepEntry chunk{.sequence = entry.sequence, .rows = rows, .before = cursor, .after = cursor};
      chunk.after.advanceTo(cursor.next + rows);
      part.entries = {&chunk, 1};
      StepOps ops;
      MNK_TRY(makeOps(ops, step, part));
      MNK_TRY(auto planned, ops.plan(step.call(), part.entries, device.get()));
      whole.append(std::move(planned));
      cursor = chunk.after;
      part.firstRow += rows;
    }
    if (whole.warning.empty()) whole.warning = chunksWarning(step, descriptor, entry.rows, chunks);
    ++part.entry;
    part.entryRow = part.firstRow;
  }
  return whole;
}

// All of a step, with all of its rules.
Result<Plan> AttentionCache::State::plan(const std::shared_ptr<Device>& device, const ResolvedStep& step) const {
  MNK_TRY(checkOperands(step));
  if (!isAtOnce(step)) return planDivided(device, step);
  StepOps ops;
  MNK_TRY(makeOps(ops, step, step.whole()));
  return ops.plan(step.call(), step.entries, device.get());
}

Result<void> AttentionCache::State::encode(CommandEncoder& encoder, const ResolvedStep& step) const {
  if (step.entries.empty()) return encoder.encode(Plan{.op = std::string(step.call()), .dispatches = {}});
  const auto planWhole = [&] { return plan(encoder.device(), step); };
  if (const auto lost = lostRows(step)) {
    MNK_TRY(planWhole());  // its rules come first
    return *lost;
  }
  const bool isInRange =
      std::ranges::all_of(step.entries, [](const auto& each) { return each.after.next < kMaxKVExtent; });
  if (!isInRange || !isAtOnce(step)) return encoder.encode(planWhole());
  if (encoder.isRepeating()) {
    MNK_TRY(const bool isRecorded, encoder.repeatAt(positionsOf(step, storage.view())));
    if (isRecorded) return {};
  }
  MNK_TRY(checkListedOnce(step));  // a form contains no sequence numbers
  StepOps ops;
  const bool isRepeatable =
      makeOps(ops, step, step.whole()) && ops.furtherAppends.empty() && ops.attention.has_value() == step.attends();
  return isRepeatable ? ops.encode(encoder, step, std::cref(planWhole)) : encoder.encode(planWhole());
}

}  // namespace mnk
