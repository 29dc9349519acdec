#include "MLXNativeKernels/AttentionCache.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"

namespace mnk {

namespace {

constexpr std::string_view kOp = "AttentionCache";

// Where a sequence stands.
struct Cursor {
  uint64_t next = 0;
  uint64_t highest = 0;  // largest `next` since the last reset: what lies a ring's length before it is overwritten
  std::optional<uint64_t> suspectFrom = {};  // the first position whose contents a failed step left unknown

  bool operator==(const Cursor&) const = default;
};

// The oldest position, other than the pinned ones, that the ring still holds.
uint64_t oldestKept(const KVCacheView& view, const Cursor& cursor) {
  if (view.wrap == KVWrap::linear || cursor.highest <= view.capacity()) return 0;
  return cursor.highest - view.ringLength();
}

Error suspectError(uint32_t sequence, const Cursor& cursor) {
  return {.op = std::string(kOp),
          .what = "the sequence is suspect because earlier work on it failed",
          .got = fmt::format("sequence {}, unknown from position {}", sequence, *cursor.suspectFrom),
          .expected = "a sequence whose contents are known",
          .fix = fmt::format("Truncate it to position {} or less, or reset it.", *cursor.suspectFrom)};
}

}  // namespace

struct AttentionCache::State {
  AttentionCacheDescriptor descriptor;
  KVCacheView view;
  mutable std::mutex mutex;
  std::vector<Cursor> cursors;
};

// What one encoder appends: it starts from the cache's cursors and becomes them when the encoder is committed.
struct AttentionCache::Appending : EncodingParticipant {
  struct Change {
    uint32_t sequence;
    Cursor before;
    Cursor after;
  };

  std::shared_ptr<State> state;
  std::vector<Change> changes;

  explicit Appending(std::shared_ptr<State> of) : state(std::move(of)) {}

  Change& changeOf(uint32_t sequence) {
    const auto found =
        std::find_if(changes.begin(), changes.end(), [&](const Change& change) { return change.sequence == sequence; });
    if (found != changes.end()) return *found;
    std::lock_guard lock(state->mutex);
    const Cursor now = state->cursors[sequence];
    return changes.emplace_back(Change{sequence, now, now});
  }

  Result<void> advance() override {
    std::lock_guard lock(state->mutex);
    // A sequence whose append was refused is none of this encoder's business.
    std::erase_if(changes, [](const Change& change) { return change.before == change.after; });
    for (const Change& change : changes) {
      const Cursor& now = state->cursors[change.sequence];
      if (now == change.before) continue;
      if (now.suspectFrom) return suspectError(change.sequence, now);
      return Error{.op = std::string(kOp),
                   .what = "the cache was changed by somebody else while this encoder recorded",
                   .got = fmt::format("sequence {} at position {}", change.sequence, now.next),
                   .expected = fmt::format("position {}, where the encoder began", change.before.next),
                   .fix = "Append to a cache from one encoder at a time, and encode this step again.",
                   .retryable = true};
    }
    for (const Change& change : changes) state->cursors[change.sequence] = change.after;
    return {};
  }

  void retreat() override {
    std::lock_guard lock(state->mutex);
    for (const Change& change : changes) {
      if (state->cursors[change.sequence] == change.after) state->cursors[change.sequence] = change.before;
    }
  }

  void finished(const Result<void>& outcome) override {
    if (outcome) return;
    std::lock_guard lock(state->mutex);
    for (const Change& change : changes) {
      Cursor& cursor = state->cursors[change.sequence];
      cursor.suspectFrom = std::min(cursor.suspectFrom.value_or(UINT64_MAX), change.before.next);
    }
  }
};

Result<AttentionCache> AttentionCache::make(const std::shared_ptr<Device>& device,
                                            const AttentionCacheDescriptor& descriptor) {
  return guarded(kOp, [&]() -> Result<AttentionCache> {
    if (auto error = firstBroken(attentionCacheRules(), descriptor, kOp)) return *error;
    auto state = std::make_shared<State>();
    state->descriptor = descriptor;
    if (descriptor.valueHeadDim == 0) state->descriptor.valueHeadDim = descriptor.headDim;
    const auto makePlane = [&](uint32_t headDim) -> Result<Tensor> {
      auto shape = Shape::make({descriptor.sequences, descriptor.kvHeads, descriptor.capacity, headDim});
      if (!shape) return std::move(shape).error();
      return Tensor::zeros(device, descriptor.dtype, *shape);
    };
    auto keys = makePlane(state->descriptor.headDim);
    if (!keys) return std::move(keys).error();
    auto values = makePlane(state->descriptor.valueHeadDim);
    if (!values) return std::move(values).error();
    state->view = {.keys = *keys,
                   .values = *values,
                   .layout = KVLayout::headMajor,
                   .wrap = descriptor.whenFull,
                   .pinned = descriptor.pinned};
    state->cursors.resize(descriptor.sequences);
    AttentionCache cache;
    cache.state_ = std::move(state);
    return cache;
  });
}

const AttentionCacheDescriptor& AttentionCache::descriptor() const {
  return state_->descriptor;
}
KVCacheView AttentionCache::view() const {
  return state_->view;
}
uint64_t AttentionCache::bytes() const {
  return state_->view.keys.byteCount() + state_->view.values->byteCount();
}

uint64_t AttentionCache::nextPosition(uint32_t sequence) const {
  std::lock_guard lock(state_->mutex);
  return sequence < state_->cursors.size() ? state_->cursors[sequence].next : 0;
}

uint64_t AttentionCache::count(uint32_t sequence) const {
  std::lock_guard lock(state_->mutex);
  if (sequence >= state_->cursors.size()) return 0;
  const Cursor& cursor = state_->cursors[sequence];
  const uint64_t pinned = std::min<uint64_t>(cursor.next, state_->view.pinned);
  const uint64_t oldest = std::max(oldestKept(state_->view, cursor), pinned);
  return pinned + (cursor.next > oldest ? cursor.next - oldest : 0);
}

bool AttentionCache::isSuspect(uint32_t sequence) const {
  std::lock_guard lock(state_->mutex);
  return sequence < state_->cursors.size() && state_->cursors[sequence].suspectFrom.has_value();
}

Result<AttentionCache::Appending*> AttentionCache::appending(CommandEncoder& encoder,
                                                             std::span<const uint32_t> sequences) {
  auto participant = std::static_pointer_cast<Appending>(encoder.participant(state_.get()));
  if (!participant) {
    participant = std::make_shared<Appending>(state_);
    if (auto joined = encoder.join(state_.get(), participant); !joined) return std::move(joined).error();
  }
  for (uint32_t sequence : sequences) {
    if (auto known = checkSequence(sequence); !known) return std::move(known).error();
    const Cursor& cursor = participant->changeOf(sequence).after;
    if (cursor.suspectFrom) return suspectError(sequence, cursor);
  }
  return participant.get();
}

Result<void> AttentionCache::checkSequence(uint32_t sequence) const {
  if (sequence < state_->descriptor.sequences) return {};
  return Error{.op = std::string(kOp),
               .what = "the sequence is not in the cache",
               .got = fmt::format("sequence {}", sequence),
               .expected = fmt::format("less than {}", state_->descriptor.sequences),
               .fix = "Pass a sequence that the cache holds."};
}

Result<void> AttentionCache::append(CommandEncoder& encoder, const Tensor& keys, const Tensor& values,
                                    uint32_t sequence) {
  return guarded(kOp, [&]() -> Result<void> {
    auto joined = appending(encoder, {&sequence, 1});
    if (!joined) return std::move(joined).error();
    Cursor& cursor = (*joined)->changeOf(sequence).after;
    const KVCacheWrite write{
        .keys = keys, .values = values, .into = state_->view, .sequence = sequence, .position = cursor.next};
    if (auto encoded = encoder.encode(write); !encoded) return encoded;
    cursor.next += keys.shape().rank() == 2 ? 1 : keys.shape()[0];
    cursor.highest = std::max(cursor.highest, cursor.next);
    return {};
  });
}

// One plan for all rows, in as many writes as the op's limit on rows asks for.
Result<Plan> AttentionCache::planRows(const Tensor& keys, const Tensor& values, std::span<const uint32_t> sequences,
                                      std::span<const uint32_t> slots) const {
  Plan whole{.op = std::string(KVCacheWrite::name), .dispatches = {}};
  for (size_t begin = 0; begin == 0 || begin < sequences.size(); begin += KVCacheWrite::kMaxRows) {
    const size_t count = std::min<size_t>(KVCacheWrite::kMaxRows, sequences.size() - begin);
    const auto part = [&](std::span<const uint32_t> indices) {
      return std::vector<uint32_t>(indices.begin() + begin, indices.begin() + begin + count);
    };
    KVCacheWrite write{
        .keys = keys, .values = values, .into = state_->view, .rows = KVCacheWrite::Rows{part(sequences), part(slots)}};
    write.sourceOffset = begin;
    // The last part takes what is left, so that a source of another length is refused.
    if (begin + count < sequences.size()) write.tokens = count;
    auto planned = plan(write);
    if (!planned) return planned;
    std::move(planned->dispatches.begin(), planned->dispatches.end(), std::back_inserter(whole.dispatches));
  }
  return whole;
}

Result<void> AttentionCache::append(CommandEncoder& encoder, const Tensor& keys, const Tensor& values,
                                    std::span<const uint32_t> sequences) {
  return guarded(kOp, [&]() -> Result<void> {
    auto joined = appending(encoder, sequences);
    if (!joined) return std::move(joined).error();
    std::vector<uint32_t> slots;
    std::map<uint32_t, uint64_t> next;
    for (uint32_t sequence : sequences) {
      const uint64_t position = next.try_emplace(sequence, (*joined)->changeOf(sequence).after.next).first->second++;
      if (state_->view.wrap == KVWrap::linear && position >= state_->view.capacity()) {
        return Error{.op = std::string(kOp),
                     .what = "the sequence is full",
                     .got = fmt::format("sequence {} at position {}", sequence, position),
                     .expected = fmt::format("less than capacity {}", state_->view.capacity()),
                     .fix = "Make the cache larger or let it overwrite the oldest, or truncate the sequence."};
      }
      // A slot is a position too, and always fits in the 32 bits of a row.
      slots.push_back(static_cast<uint32_t>(state_->view.slotOf(position)));
    }
    auto planned = planRows(keys, values, sequences, slots);
    if (!planned) return std::move(planned).error();
    if (auto encoded = encoder.encode(*planned); !encoded) return encoded;
    for (const auto& [sequence, position] : next) {
      Cursor& cursor = (*joined)->changeOf(sequence).after;
      cursor.next = position;
      cursor.highest = std::max(cursor.highest, position);
    }
    return {};
  });
}

Result<void> AttentionCache::truncate(uint64_t position, uint32_t sequence) {
  if (auto known = checkSequence(sequence); !known) return known;
  std::lock_guard lock(state_->mutex);
  Cursor& cursor = state_->cursors[sequence];
  if (position == 0) {
    cursor = {};
    return {};
  }
  const uint64_t oldest = oldestKept(state_->view, cursor);
  const bool leavesPinnedOnly = position <= state_->view.pinned;
  if (cursor.suspectFrom && position > *cursor.suspectFrom) return suspectError(sequence, cursor);
  if (position > cursor.next || (position < oldest && !leavesPinnedOnly)) {
    return Error{.op = std::string(kOp),
                 .what = "the sequence cannot be cut there",
                 .got = fmt::format("position {}", position),
                 .expected = fmt::format("{} to {}, or at most {}", oldest, cursor.next, state_->view.pinned),
                 .fix = "Cut at a position whose predecessors the cache still holds, or reset the sequence."};
  }
  cursor.next = position;
  if (leavesPinnedOnly) cursor.highest = position;  // the ring is empty again
  cursor.suspectFrom.reset();
  return {};
}

Result<void> AttentionCache::reset(uint32_t sequence) {
  return truncate(0, sequence);
}

void AttentionCache::reset() {
  std::lock_guard lock(state_->mutex);
  std::fill(state_->cursors.begin(), state_->cursors.end(), Cursor{});
}

}  // namespace mnk
