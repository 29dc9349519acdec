#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/Generated/FlashDecode.hpp"
#include "Ops/Common/HeadsMemory.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// Attention of rows whose first tokens are in other caches: a part over each prefix, a part over the rows' own cache,
// and the merge of all parts.

// Tensors in the scratch memory of a plan. Ops are planned with tensors, so a buffer without bytes represents the
// memory until `place` puts the encoder's in its place.
class ScratchTensors {
 public:
  ScratchTensors();
  Result<Tensor> make(DType dtype, std::span<const uint64_t> extents);
  // Moves the plan's own scratch memory behind the tensors.
  void place(Plan& plan) const;

 private:
  std::shared_ptr<Buffer> buffer_;
  uint64_t bytes_ = 0;
};

// The attention of a step after prefixes.
class AttentionCache::State::PrefixedAttention {
 public:
  // Checks the step, without its queries. `state` is that of the rows' own cache.
  static Result<PrefixedAttention> make(CommandEncoder& encoder, const State& state, const ResolvedStep& step);

  uint64_t length() const;  // of all prefixes
  ScratchTensors& scratch() { return scratch_; }
  // Checks that no result shares memory with `sources` or a cache.
  Result<void> checkMemory(std::vector<NamedRange> sources) const;
  // How rows attend to one part, and where the part over the rows' own cache goes.
  const AttentionOptions& partOptions() const { return partOptions_; }
  Result<AttentionResults> makeParts(uint64_t heads);
  Result<Plan> planPrefixes(const std::shared_ptr<Device>& device, const HeadsView& queries) const;
  // Appends the merge to a plan and gives it the scratch memory.
  Result<void> finish(Plan& plan) const;
  // Notes what the plan reads, once it is encoded.
  void noteReads() const;

 private:
  struct Prefix {
    std::shared_ptr<State> state;
    CacheCursors::Recording* recording = nullptr;  // of the encoder, which owns it
    AttendedSequence attended;
  };

  PrefixedAttention(const State& state, const ResolvedStep& step)
      : state_(state), step_(step), rows_(RowCounts::of(step.entries)) {}
  AttentionResults part(uint64_t index) const;

  const State& state_;
  const ResolvedStep& step_;
  RowCounts rows_;
  std::vector<Prefix> prefixes_;
  AttentionResults results_;
  AttentionOptions options_, partOptions_;
  ScratchTensors scratch_;
  std::vector<AttentionPartials> parts_;  // of the prefixes, then of the rows' own cache
  AttentionPartials all_;
};

namespace {

constexpr uint64_t kScratchUnit = 256;  // at which tensors begin

class ScratchBuffer final : public Buffer {
 public:
  ScratchBuffer() : Buffer(uint64_t{1} << 62) {}
  std::shared_ptr<Device> device() const override { return nullptr; }
  MemoryRange range() const override { return {this, 0, length()}; }
  std::byte* contents() override { return nullptr; }
};

std::string dimsText(const AttentionCacheDescriptor& of) {
  const std::string latent = of.latentDim == 0 ? "" : fmt::format(", a latent part of {}", of.latentDim);
  return fmt::format("{} of {}, values of {}{}", countText(of.kvHeads, "head"), of.headDim, of.valueHeadDim, latent);
}

std::string windowText(const AttentionCacheDescriptor& of) {
  return of.slidingWindow ? fmt::format("a window of {}", of.slidingWindow->window) : "no window";
}

bool haveSameDims(const AttentionCacheDescriptor& a, const AttentionCacheDescriptor& b) {
  return a.kvHeads == b.kvHeads && a.headDim == b.headDim && a.valueHeadDim == b.valueHeadDim &&
         a.latentDim == b.latentDim;
}

// All rows as those of one sequence, if their distances allow it.
std::optional<HeadsView> asOneSequence(const HeadsView& queries) {
  HeadsView::Strides strides = queries.resolved();
  if (strides.sequences != 1 && strides.sequenceStride != strides.tokens * strides.tokenStride) return std::nullopt;
  strides.tokens *= strides.sequences;
  strides.sequences = 1;
  return HeadsView(queries.tensor, strides);
}

Result<void> reshape(std::optional<Tensor>& tensor, std::initializer_list<uint64_t> extents) {
  if (!tensor) return {};
  MNK_TRY(auto shape, Shape::make(extents));
  MNK_TRY(auto reshaped, tensor->reshaped(shape));
  tensor = std::move(reshaped);
  return {};
}

}  // namespace

ScratchTensors::ScratchTensors() : buffer_(std::make_shared<ScratchBuffer>()) {}

Result<Tensor> ScratchTensors::make(DType dtype, std::span<const uint64_t> extents) {
  MNK_TRY(auto shape, Shape::make(extents));
  MNK_TRY(auto tensor, Tensor::over(buffer_, dtype, shape, bytes_));
  bytes_ = (bytes_ + tensor.byteCount() + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
  return tensor;
}

void ScratchTensors::place(Plan& plan) const {
  for (Dispatch& dispatch : plan.dispatches) {
    for (Binding& binding : dispatch.buffers) {
      if (!binding.buffer && !binding.isZeroed) binding.offset += bytes_;
      if (binding.buffer == buffer_) binding.buffer = nullptr;
    }
  }
  plan.scratchBytes += bytes_;
}

auto AttentionCache::State::PrefixedAttention::make(CommandEncoder& encoder, const State& state,
                                                    const ResolvedStep& step) -> Result<PrefixedAttention> {
  PrefixedAttention made(state, step);
  const auto& after = step.step.after;
  const AttentionOptions& options = step.step.options;
  if (after.size() >= MergePartials::kMaxParts) {
    return cacheError("there are too many prefixes", fmt::format("{}", after.size()),
                      fmt::format("at most {}", MergePartials::kMaxParts - 1), "Put prefixes into one cache.");
  }
  if (options.mask) {
    return cacheError("a mask cannot be divided among caches", "a mask, and prefixes", "attention without a mask",
                      "Leave out the mask; causality and windows hold for all caches.");
  }
  if (options.windowSeesPinned) {
    return cacheError("pinned positions of one cache are not those of the whole sequence",
                      "windowSeesPinned, and prefixes", "a window without pinned positions",
                      "Leave windowSeesPinned out, or use sinks.");
  }
  for (const CachePrefix& prefix : after) {
    const auto& other = prefix.cache.state_;
    if (!haveSameDims(other->descriptor, state.descriptor)) {
      return cacheError("a prefix is of another model", dimsText(other->descriptor),
                        fmt::format("{}, as the cache of the rows", dimsText(state.descriptor)),
                        "Pass prefixes of the layer that the rows attend in.");
    }
    if (options.window == 0 && other->ownWindow() != state.ownWindow()) {
      return cacheError("caches have different windows",
                        fmt::format("{} in a prefix, {} in the cache of the rows", windowText(other->descriptor),
                                    windowText(state.descriptor)),
                        "one window for all caches", "Pass the window as an option.");
    }
    MNK_TRY(const uint32_t sequence, other->cursors.numberOf(prefix.sequence));
    const bool isOwn = other.get() == &state &&
                       std::ranges::any_of(step.entries, [&](const auto& entry) { return entry.sequence == sequence; });
    const bool isAgain = std::any_of(made.prefixes_.begin(), made.prefixes_.end(), [&](const Prefix& each) {
      return each.state == other && each.attended.sequence == sequence;
    });
    if (isOwn || isAgain) {
      return cacheError("a sequence comes twice",
                        fmt::format("sequence {} as a prefix and {}", sequence,
                                    isOwn ? "as a sequence of the rows" : "again as a prefix"),
                        "each sequence once", "Leave out the prefix, or pass another sequence.");
    }
    MNK_TRY(auto recording, State::join(other, encoder, {&sequence, 1}));
    MNK_TRY(auto cursor, recording->known(sequence));
    if (cursor.next == 0) {
      return cacheError("a prefix holds no tokens", fmt::format("sequence {} at position 0", sequence),
                        "a sequence with tokens", "Append the prefix first, or leave it out.");
    }
    made.prefixes_.push_back({other, recording, StepEntry{.sequence = sequence, .after = cursor}.attended()});
  }
  made.results_ = step.step.results;
  made.options_ = options;
  made.options_.window = step.window;
  made.partOptions_ = made.options_;
  made.partOptions_.sinks.reset();
  return made;
}

uint64_t AttentionCache::State::PrefixedAttention::length() const {
  uint64_t length = 0;
  for (const Prefix& prefix : prefixes_) length += prefix.attended.length;
  return length;
}

Result<void> AttentionCache::State::PrefixedAttention::checkMemory(std::vector<NamedRange> sources) const {
  const auto addPlanes = [&](const State& state, std::string_view name) {
    for (const auto& plane : state.storage.planes()) {
      if (plane) sources.push_back({name, plane->range()});
    }
  };
  addPlanes(state_, "the cache");
  for (const Prefix& prefix : prefixes_) addPlanes(*prefix.state, "a prefix");
  if (options_.slopes) sources.push_back({"slopes", options_.slopes->range()});
  return checkOverlap(sources, results_);
}

Result<AttentionResults> AttentionCache::State::PrefixedAttention::makeParts(uint64_t heads) {
  const uint64_t count = prefixes_.size() + 1, headDim = state_.descriptor.valueHeadDim;
  MNK_TRY(auto sums, scratch_.make(DType::f32, std::array{count, rows_.total, heads, headDim}));
  MNK_TRY(auto stats, scratch_.make(DType::f32, std::array{count, rows_.total, heads, uint64_t{2}}));
  const auto entry = [&](const Tensor& all, uint64_t index, uint64_t last) -> Result<Tensor> {
    MNK_TRY(auto slice, all.slice(index, 1));
    MNK_TRY(auto shape, Shape::make({rows_.total, heads, last}));
    return slice.reshaped(shape);
  };
  for (uint64_t index = 0; index < count; ++index) {
    MNK_TRY(auto ownSums, entry(sums, index, headDim));
    MNK_TRY(auto ownStats, entry(stats, index, 2));
    parts_.push_back({.sums = std::move(ownSums), .stats = std::move(ownStats)});
  }
  all_ = {.sums = std::move(sums), .stats = std::move(stats)};
  MNK_TRY(reshape(results_.output, {rows_.total, heads, headDim}));
  MNK_TRY(reshape(results_.logSumExp, {rows_.total, heads}));
  return part(prefixes_.size());
}

AttentionResults AttentionCache::State::PrefixedAttention::part(uint64_t index) const {
  return {.partials = parts_[index]};
}

Result<Plan> AttentionCache::State::PrefixedAttention::planPrefixes(const std::shared_ptr<Device>& device,
                                                                    const HeadsView& queries) const {
  Plan whole{.op = std::string(step_.call()), .dispatches = {}};
  const auto together = asOneSequence(queries);
  uint64_t before = length();  // positions from the start of this prefix to the first position of the rows' own cache
  for (size_t index = 0; index < prefixes_.size(); ++index) {
    const Prefix& prefix = prefixes_[index];
    std::vector<AttendedSequence> attended;
    uint64_t furthest = 0;  // number of positions up to the last row
    for (const StepEntry& entry : step_.entries) {
      attended.push_back(prefix.attended);
      attended.back().rows = entry.rows;
      attended.back().position = static_cast<int64_t>(before + entry.before.next);
      if (entry.rows != 0) furthest = std::max(furthest, before + entry.before.next + entry.rows);
    }
    // Rows that all see the whole prefix, wherever they are, read it together.
    const bool sameForAll = !options_.slopes && (options_.window == 0 || furthest <= options_.window);
    const bool isTogether =
        sameForAll && together && std::max(furthest, prefix.attended.length + rows_.total) < kMaxKVExtent;
    RowCounts call = rows_;
    AttentionOptions options = partOptions_;
    if (isTogether) {
      attended = {prefix.attended};
      attended.back().rows = rows_.total;
      attended.back().position = static_cast<int64_t>(prefix.attended.length);
      call = {.total = rows_.total, .entries = 1, .rows = rows_.total};
      // Rows of later entries only seem to be further away.
      if (options.window != 0) options.window = static_cast<uint32_t>(prefix.attended.length + rows_.total);
    }
    const HeadsView& rows = call.entries == 1 && together ? *together : queries;
    auto planned = [&]() -> Result<Plan> {
      MNK_TRY(const auto op, prefix.state->attentionOf(rows, part(index), options, call, std::move(attended)));
      if (!op) return Plan{.op = std::string(FlashDecode::name), .dispatches = {}};
      return device ? mnk::plan(*op, *device) : mnk::plan(*op);
    }();
    if (!planned) {
      Error error = std::move(planned).error();
      error.got = fmt::format("in prefix {}: {}", index, error.got);
      return error;
    }
    whole.append(*std::move(planned));
    before -= prefix.attended.length;
  }
  return whole;
}

Result<void> AttentionCache::State::PrefixedAttention::finish(Plan& whole) const {
  MNK_TRY(auto merged, mnk::plan(MergePartials{.parts = all_, .sinks = options_.sinks, .results = results_}));
  whole.append(std::move(merged));
  scratch_.place(whole);
  return {};
}

void AttentionCache::State::PrefixedAttention::noteReads() const {
  for (const Prefix& prefix : prefixes_) {
    const AttendedSequence& attended = prefix.attended;
    const CacheCursor cursor{.next = attended.length, .highest = attended.written()};
    // What is appended to a prefix later comes before the rows, which do not see it: that is not a matter of order.
    prefix.recording->read(prefix.state->cursors.slots().oldestKept(cursor), attended.length,
                           static_cast<uint32_t>(attended.sequence));
  }
}

namespace {

// Plans the rotation of a step's queries and keys into scratch memory, and makes `own` use them.
Result<Plan> planRotation(const ResolvedStep& step, CacheStep& own, uint64_t prefixTokens, ScratchTensors& scratch) {
  Plan whole{.op = std::string(step.call()), .dispatches = {}};
  if (!step.rotary) return whole;
  own.rotary.reset();
  for (HeadsView* view : {&own.queries, &own.keys}) {
    const HeadsView::Strides axes = view->resolved();
    const uint64_t extents[] = {axes.sequences, axes.tokens, axes.heads, axes.headDim};
    MNK_TRY(auto tensor, scratch.make(view->tensor.dtype(), extents));
    *view = HeadsView(std::move(tensor));
  }
  const auto add = [&](const StepPart& part, uint64_t runs, uint64_t rows) -> Result<void> {
    MultiRoPE rotation;
    MNK_TRY(setRotation(rotation, step, part, prefixTokens));
    const auto view = [&](const HeadsView& all) { return rows == 0 ? all : runsOf(all, part.firstRow, rows, runs); };
    rotation.rotatedQueries = view(own.queries);
    rotation.rotatedKeys = view(own.keys);
    MNK_TRY(auto planned, plan(rotation));
    whole.append(std::move(planned));
    return {};
  };
  if (canRotateAtOnce(step)) {
    const RowCounts rows = RowCounts::of(step.entries);
    MNK_TRY(add(step.whole(), rows.entries, rows.rows));
    return whole;
  }
  StepPart part{.isWhole = false};
  for (const StepEntry& entry : step.entries) {
    part.entries = {&entry, 1};
    if (entry.rows != 0) MNK_TRY(add(part, 1, entry.rows));
    ++part.entry;
    part.entryRow = part.firstRow += entry.rows;
  }
  return whole;
}

}  // namespace

Result<void> AttentionCache::State::encodeAfterPrefixes(CommandEncoder& encoder, CacheCursors::Recording& recording,
                                                        const ResolvedStep& step) const {
  if (!step.isListed()) MNK_TRY(checkViews(step));
  const RowCounts rows = RowCounts::of(step.entries);
  const uint64_t heads = step.step.queries.resolved().heads;
  MNK_TRY(checkResults(step.step.results, rows, heads, descriptor.valueHeadDim));
  MNK_TRY(auto prefixed, PrefixedAttention::make(encoder, *this, step));
  MNK_TRY(checkRotated(step, encoder, recording, prefixed.length()));
  std::vector<NamedRange> sources{{"queries", rangeOf(step.step.queries)}};
  if (step.appends()) {
    sources.push_back({"keys", rangeOf(step.step.keys)});
    sources.push_back({"values", rangeOf(step.step.values)});
  }
  if (step.rotary) addNumbers(sources, *step.rotary);
  MNK_TRY(prefixed.checkMemory(std::move(sources)));
  if (rows.total == 0) return {};
  if (const auto lost = lostRows(step)) return *lost;
  CacheStep own = step.step;
  own.after.clear();
  own.options = prefixed.partOptions();
  MNK_TRY(own.results, prefixed.makeParts(heads));
  MNK_TRY(auto whole, planRotation(step, own, prefixed.length(), prefixed.scratch()));
  MNK_TRY(auto prefixes, prefixed.planPrefixes(encoder.device(), own.queries));
  whole.append(std::move(prefixes));
  const ResolvedStep ownStep{.kind = step.kind, .step = own, .window = step.window, .entries = step.entries};
  MNK_TRY(auto stored, plan(encoder.device(), ownStep));
  whole.append(std::move(stored));
  MNK_TRY(prefixed.finish(whole));
  whole.hasFixedPositions = false;  // each run of a recording plans again
  MNK_TRY(encoder.encode(whole));
  prefixed.noteReads();
  return {};
}

}  // namespace mnk
