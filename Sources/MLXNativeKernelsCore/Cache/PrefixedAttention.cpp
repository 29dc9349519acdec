#include "Cache/PrefixedAttention.hpp"

#include <algorithm>

#include "Ops/Common/HeadsMemory.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr uint64_t kScratchUnit = 256;  // at which tensors begin

class ScratchBuffer final : public Buffer {
 public:
  ScratchBuffer() : Buffer(uint64_t{1} << 62) {}
  std::shared_ptr<Device> device() const override { return nullptr; }
  MemoryRange range() const override { return {this, 0, length()}; }
  std::byte* contents() override { return nullptr; }
};

Error prefixError(std::string_view call, std::string_view what, std::string got, std::string expected,
                  std::string_view fix) {
  return {.op = std::string(call),
          .what = std::string(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::string(fix)};
}

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

uint32_t windowOf(const AttentionCacheDescriptor& of) {
  return of.slidingWindow ? of.slidingWindow->window : 0;
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

auto AttentionCache::State::PrefixedAttention::make(std::string_view call, CommandEncoder& encoder, const State& state,
                                                    std::span<const CachePrefix> after,
                                                    std::span<const SequenceRows> entries,
                                                    const AttentionResults& results, const AttentionOptions& options)
    -> Result<PrefixedAttention> {
  PrefixedAttention made(call, state, entries);
  if (after.size() >= MergePartials::kMaxParts) {
    return prefixError(call, "there are too many prefixes", fmt::format("{}", after.size()),
                       fmt::format("at most {}", MergePartials::kMaxParts - 1), "Put prefixes into one cache.");
  }
  if (options.mask) {
    return prefixError(call, "a mask cannot be divided among caches", "a mask, and prefixes",
                       "attention without a mask", "Leave out the mask; causality and windows hold for all caches.");
  }
  if (options.windowSeesPinned) {
    return prefixError(call, "pinned positions of one cache are not those of the whole sequence",
                       "windowSeesPinned, and prefixes", "a window without pinned positions",
                       "Leave windowSeesPinned out, or use sinks.");
  }
  for (const CachePrefix& prefix : after) {
    const auto& other = prefix.cache.state_;
    if (!haveSameDims(other->descriptor, state.descriptor)) {
      return prefixError(call, "a prefix is of another model", dimsText(other->descriptor),
                         fmt::format("{}, as the cache of the rows", dimsText(state.descriptor)),
                         "Pass prefixes of the layer that the rows attend in.");
    }
    if (options.window == 0 && mnk::windowOf(other->descriptor) != mnk::windowOf(state.descriptor)) {
      return prefixError(call, "caches have different windows",
                         fmt::format("{} in a prefix, {} in the cache of the rows", windowText(other->descriptor),
                                     windowText(state.descriptor)),
                         "one window for all caches", "Pass the window as an option.");
    }
    MNK_TRY(const uint32_t sequence, other->cursors.numberOf(prefix.sequence));
    const bool isOwn = other.get() == &state && std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
                         return entry.sequence == sequence;
                       });
    const bool isAgain = std::any_of(made.prefixes_.begin(), made.prefixes_.end(), [&](const Prefix& each) {
      return each.state == other && each.attended.sequence == sequence;
    });
    if (isOwn || isAgain) {
      return prefixError(call, "a sequence comes twice",
                         fmt::format("sequence {} as a prefix and {}", sequence,
                                     isOwn ? "as a sequence of the rows" : "again as a prefix"),
                         "each sequence once", "Leave out the prefix, or pass another sequence.");
    }
    MNK_TRY(auto recording, State::join(other, encoder, {&sequence, 1}));
    MNK_TRY(auto cursor, recording->known(sequence));
    if (cursor.next == 0) {
      return prefixError(call, "a prefix holds no tokens", fmt::format("sequence {} at position 0", sequence),
                         "a sequence with tokens", "Append the prefix first, or leave it out.");
    }
    made.prefixes_.push_back({other, recording, attendedBy(sequence, cursor)});
  }
  made.results_ = results;
  made.options_ = options;
  made.options_.window = state.windowOf(options);
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
  return checkOverlap(call_, sources, results_);
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
  MNK_TRY(reshape(results_.into, {rows_.total, heads, headDim}));
  MNK_TRY(reshape(results_.logSumExp, {rows_.total, heads}));
  return part(prefixes_.size());
}

AttentionResults AttentionCache::State::PrefixedAttention::part(uint64_t index) const {
  return {.partials = parts_[index]};
}

Result<Plan> AttentionCache::State::PrefixedAttention::planPrefixes(const std::shared_ptr<Device>& device,
                                                                    const HeadsView& queries,
                                                                    std::span<const uint64_t> starts) const {
  Plan whole{.op = std::string(call_), .dispatches = {}};
  const auto together = asOneSequence(queries);
  uint64_t before = length();  // positions from the start of this prefix to the first position of the rows' own cache
  for (size_t index = 0; index < prefixes_.size(); ++index) {
    const Prefix& prefix = prefixes_[index];
    const auto sequence = static_cast<uint32_t>(prefix.attended.sequence);
    std::vector<SequenceRows> entries;
    std::vector<AttendedSequence> attended;
    uint64_t furthest = 0;  // number of positions up to the last row
    for (size_t i = 0; i < entries_.size(); ++i) {
      entries.push_back({sequence, entries_[i].rows});
      attended.push_back(prefix.attended);
      attended.back().position = static_cast<int64_t>(before + starts[i]);
      if (entries_[i].rows != 0) furthest = std::max(furthest, before + starts[i] + entries_[i].rows);
    }
    // Rows that all see the whole prefix, wherever they are, read it together.
    const bool sameForAll = !options_.slopes && (options_.window == 0 || furthest <= options_.window);
    CallRows call = rows_;
    AttentionOptions options = partOptions_;
    if (sameForAll && together && std::max(furthest, prefix.attended.length + rows_.total) < kMaxKVExtent) {
      entries = {{sequence, rows_.total}};
      attended = {prefix.attended};
      attended.back().position = static_cast<int64_t>(prefix.attended.length);
      call = CallRows::of(entries);
      // Rows of later entries only seem to be further away.
      if (options.window != 0) options.window = static_cast<uint32_t>(prefix.attended.length + rows_.total);
    }
    auto planned = prefix.state->planAttendRows(device, call.entries == 1 && together ? *together : queries,
                                                part(index), options, call, entries, attended);
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
  MNK_TRY(auto merged, plan(MergePartials{.partials = all_, .sinks = options_.sinks, .results = results_}));
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

}  // namespace mnk
