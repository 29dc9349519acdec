// What fills a cache from another one: copies of sequences, growth, and quantization.
#include <numeric>
#include <vector>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr std::string_view kCopy = "AttentionCache.copy";
constexpr std::string_view kGrown = "AttentionCache.grown";
constexpr std::string_view kQuantized = "AttentionCache.quantized";

// "f16", "turbo of 4 bits", "turbo of 5 bits and 4 bits", "f16 and turbo of 4 bits" for dense keys
std::string storageText(const AttentionCacheDescriptor& d) {
  const auto& q = d.quantized;
  if (!q) return std::string(name(d.dtype));
  if (!q->hasQuantizedKeys()) return fmt::format("{} and {}", name(d.dtype), q->valueCodec().text());
  if (!q->hasQuantizedValues()) return fmt::format("{} and {}", q->keyCodec().text(), name(d.dtype));
  if (q->valueBits == q->keyBits) return q->keyCodec().text();
  return fmt::format("{} and {} bits", q->keyCodec().text(), q->valueBits);
}

bool haveSameBytes(const std::optional<Tensor>& one, const std::optional<Tensor>& other) {
  if (!one || !other) return !one && !other;
  std::vector<std::byte> bytes[2] = {std::vector<std::byte>(one->byteCount()),
                                     std::vector<std::byte>(other->byteCount())};
  return one->read(bytes[0]) && other->read(bytes[1]) && bytes[0] == bytes[1];
}

// Slots of one cache mean the same in the other.
Result<void> checkSameShape(const AttentionCacheDescriptor& source, const AttentionCacheDescriptor& target) {
  const std::string shapes[] = {shapeText(source), shapeText(target)};
  if (shapes[0] != shapes[1]) {
    return Error{.op = std::string(kCacheName),
                 .what = "the caches differ in shape or storage",
                 .got = shapes[1],
                 .expected = fmt::format("{}, as the source", shapes[0]),
                 .fix = "Copy to a cache with the same heads, head dims and storage."};
  }
  const auto& from = source.quantized;
  const auto& into = target.quantized;
  if (!from || (haveSameBytes(from->keyMeans, into->keyMeans) && haveSameBytes(from->valueMeans, into->valueMeans) &&
                haveSameBytes(from->keyChannelScales, into->keyChannelScales))) {
    return {};
  }
  return Error{.op = std::string(kCacheName),
               .what = "the caches differ in means or channel scales",
               .got = "other numbers, or none",
               .expected = "those of the source, in which its codes are measured",
               .fix = "Make both caches with the same means and channel scales."};
}

Error unfitError(const CacheSlots& from, const CacheCursor& cursor, uint32_t sequence, const CacheSlots& into) {
  const bool hasLost = from.oldestKept(cursor) != 0;
  return {.op = std::string(kCacheName),
          .what = "the other cache cannot hold the sequence",
          .got = fmt::format("{} of sequence {}, for a {} of {} slots, {} of them pinned", from.heldText(cursor),
                             sequence, into.wrap == KVWrap::ring ? "ring" : "linear cache", into.capacity, into.pinned),
          .expected = hasLost
                          ? fmt::format("a ring of at least {} slots, with {} pinned", from.count(cursor), from.pinned)
                          : fmt::format("at least {} slots", cursor.next),
          .fix = hasLost ? "Copy to such a ring." : "Copy to a cache of that size, or truncate the sequence."};
}

// The slots of readable positions, with adjacent slots joined into runs.
std::vector<SlotRun> heldRuns(const CacheSlots& slots, const CacheCursor& cursor) {
  std::vector<SlotRun> runs;
  for (const SlotRun& run : slots.heldSlots(cursor)) {
    if (run.count == 0) continue;
    if (!runs.empty() && runs.back().begin + runs.back().count == run.begin)
      runs.back().count += run.count;
    else
      runs.push_back(run);
  }
  return runs;
}

}  // namespace

std::string shapeText(const AttentionCacheDescriptor& d) {
  std::string text = fmt::format("{} of {}", countText(d.kvHeads, "head"), d.headDim);
  if (d.latentDim != 0) {
    text += fmt::format(" behind a latent part of {}", d.latentDim);
  } else if (d.valueHeadDim != d.headDim) {
    text += fmt::format(" and {}", d.valueHeadDim);
  }
  text += fmt::format(" as {}", storageText(d));
  if (d.quantized && d.quantized->scaleFactor != 1) text += fmt::format(" times {}", d.quantized->scaleFactor);
  return text;
}

// Copies sources[i] of `from` to sequence targets[i]; both lists are consecutive. Neighbors that stand alike share
// their dispatches.
Result<void> AttentionCache::State::copyFrom(CommandEncoder& encoder, const std::shared_ptr<State>& self,
                                             const std::shared_ptr<State>& from, std::span<const uint32_t> sources,
                                             std::span<const uint32_t> targets) {
  MNK_TRY(auto reading, join(from, encoder, sources));
  MNK_TRY(auto writing, join(self, encoder, targets));
  const CacheSlots &fromSlots = from->cursors.slots(), &slots = self->cursors.slots();
  std::vector<CacheCursor> cursors, copied;
  for (size_t i = 0; i < sources.size(); ++i) {
    MNK_TRY(auto cursor, reading->known(sources[i]));
    const auto moved = slots.moved(cursor, fromSlots);
    if (!moved) return unfitError(fromSlots, cursor, sources[i], slots);
    MNK_TRY(writing->toReplace(targets[i]));
    cursors.push_back(cursor);
    copied.push_back(*moved);
  }
  Plan whole{.op = std::string(KVCacheWrite::name), .dispatches = {}};
  for (size_t first = 0, end; first < sources.size(); first = end) {
    end = first + 1;
    while (end < sources.size() && cursors[end] == cursors[first]) ++end;
    MNK_TRY(auto planned, self->storage.planCopy(from->storage, {.source = sources[first],
                                                                 .target = targets[first],
                                                                 .sequences = end - first,
                                                                 .length = cursors[first].next,
                                                                 .oldest = fromSlots.oldestKept(cursors[first])}));
    whole.append(std::move(planned));
  }
  MNK_TRY(encoder.encode(whole));
  for (size_t i = 0; i < sources.size(); ++i) {
    reading->read(fromSlots.oldestKept(cursors[i]), cursors[i].next, sources[i]);
    writing->replace(copied[i], targets[i]);
  }
  return {};
}

Result<void> AttentionCache::copy(CommandEncoder& encoder, uint32_t source, uint32_t target) {
  return copy(encoder, source, *this, target);
}

Result<void> AttentionCache::copy(CommandEncoder& encoder, uint32_t source, AttentionCache& into,
                                  uint32_t target) const {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, source, other = into, target](CommandEncoder& next) mutable {
      return cache.copy(next, source, other, target);
    };
  };
  return cacheCall(encoder, kCopy, again, [&]() -> Result<void> {
    MNK_TRY(const uint32_t to, into.state_->cursors.numberOf(target));
    MNK_TRY(const uint32_t from, state_->cursors.numberOf(source));
    if (state_ != into.state_) {
      MNK_TRY(checkSameShape(state_->descriptor, into.state_->descriptor));
    } else if (from == to) {
      MNK_TRY(auto recording, State::join(state_, encoder, {&from, 1}));
      MNK_TRY(recording->known(from));
      return encoder.encode(Plan{.op = std::string(kCopy), .dispatches = {}});
    }
    return State::copyFrom(encoder, into.state_, state_, {&from, 1}, {&to, 1});
  });
}

Result<AttentionCache> AttentionCache::State::makeFrom(const State& source,
                                                       const AttentionCacheDescriptor& descriptor) {
  MNK_TRY(auto cache, make(source.storage.view().keys.buffer()->device(), descriptor));
  // Nothing is known of it unless the encoder is committed.
  cache.state_->cursors.restore({descriptor.sequences, CacheCursor{.suspectFrom = 0}});
  return cache;
}

Result<AttentionCache> AttentionCache::grown(CommandEncoder& encoder, uint32_t capacity) const {
  return guardedAs(kGrown, [&]() -> Result<AttentionCache> {
    if (encoder.isRecording()) {
      return Error{.op = std::string(kCacheName),
                   .what = "a recording cannot grow a cache",
                   .got = "a larger cache, which every run would fill again from the old one",
                   .expected = "a step that runs once",
                   .fix = "Grow the cache in a step that is not recorded, then record steps over the larger one."};
    }
    AttentionCacheDescriptor descriptor = state_->descriptor;
    if (capacity < descriptor.capacity) {
      return Error{.op = std::string(kCacheName),
                   .what = "a cache cannot shrink",
                   .got = fmt::format("a capacity of {}", capacity),
                   .expected = fmt::format("at least {}, as now", descriptor.capacity),
                   .fix = "Pass a larger capacity, or copy the sequences to a smaller cache."};
    }
    descriptor.capacity = capacity;
    MNK_TRY(auto larger, State::makeFrom(*state_, descriptor));
    MNK_TRY(larger.growFrom(encoder, *this));
    return larger;
  });
}

Result<void> AttentionCache::growFrom(CommandEncoder& encoder, const AttentionCache& source) {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, source](CommandEncoder& next) mutable { return cache.growFrom(next, source); };
  };
  return cacheCall(encoder, kGrown, again, [&]() -> Result<void> {
    const std::vector<uint32_t> all = state_->allSequences();
    return State::copyFrom(encoder, state_, source.state_, all, all);
  });
}

Result<AttentionCache> AttentionCache::quantized(CommandEncoder& encoder, const KVQuantizedStorage& storage) const {
  return guardedAs(kQuantized, [&]() -> Result<AttentionCache> {
    AttentionCacheDescriptor descriptor = state_->descriptor;
    if (descriptor.quantized) {
      return Error{.op = std::string(kCacheName),
                   .what = "only a dense cache can be quantized",
                   .got = fmt::format("a cache of {}", storageText(descriptor)),
                   .expected = "a dense cache",
                   .fix = "Dequantize its positions, and append them to a cache of the other storage."};
    }
    descriptor.quantized = storage;
    MNK_TRY(auto quantized, State::makeFrom(*state_, descriptor));
    MNK_TRY(quantized.quantizeFrom(encoder, *this));
    return quantized;
  });
}

Result<void> AttentionCache::quantizeFrom(CommandEncoder& encoder, const AttentionCache& source) {
  const auto again = [&]() -> CommandEncoder::Call {
    return [cache = *this, source](CommandEncoder& next) mutable { return cache.quantizeFrom(next, source); };
  };
  return cacheCall(encoder, kQuantized, again, [&]() -> Result<void> {
    const std::vector<uint32_t> sequences = state_->allSequences();
    MNK_TRY(auto from, State::join(source.state_, encoder, sequences));
    MNK_TRY(auto into, State::join(state_, encoder, sequences));
    const CacheSlots& slots = state_->cursors.slots();
    std::vector<CacheCursor> cursors;
    for (const uint32_t sequence : sequences) {
      MNK_TRY(auto cursor, from->known(sequence));
      (void)into->after(sequence);  // reserves memory, so that `replace` cannot fail
      cursors.push_back(cursor);
    }
    Plan whole{.op = std::string(kQuantized), .dispatches = {}};
    for (uint32_t first = 0, end; first < sequences.size(); first = end) {
      const std::vector<SlotRun> runs = heldRuns(slots, cursors[first]);
      for (end = first + 1; end < sequences.size() && !state_->storage.hasChannels(); ++end) {
        if (heldRuns(slots, cursors[end]) != runs) break;
      }
      for (const SlotRun& run : runs) {
        MNK_TRY(auto planned, state_->storage.planQuantize(source.view(), first, end - first, run));
        whole.append(std::move(planned));
      }
    }
    MNK_TRY(encoder.encode(whole));
    for (const uint32_t sequence : sequences) {
      from->read(slots.oldestKept(cursors[sequence]), cursors[sequence].next, sequence);
      into->replace(cursors[sequence], sequence);
    }
    return {};
  });
}

std::vector<uint32_t> AttentionCache::State::allSequences() const {
  std::vector<uint32_t> all(descriptor.sequences);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace mnk
