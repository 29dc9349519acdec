#include "MLXNativeKernels/AttentionCache.hpp"

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// Checks that the cache still holds all of these positions.
Result<void> checkHeld(const CacheSlots& slots, const CacheCursor& cursor, uint64_t position, uint64_t tokens,
                       uint32_t sequence) {
  if (!slots.holds(cursor, position, tokens)) {
    return Error{.op = std::string(kCacheName),
                 .what = "the cache does not hold these positions",
                 .got = fmt::format("position {} + {} of sequence {}", position, countText(tokens, "token"), sequence),
                 .expected = slots.heldText(cursor),
                 .fix = "Read positions that were appended and that the ring has not overwritten."};
  }
  if (cursor.suspectFrom && tokens != 0 && position + tokens > *cursor.suspectFrom) {
    return suspectError(sequence, cursor);
  }
  return {};
}

}  // namespace

Result<AttentionCache> AttentionCache::make(const std::shared_ptr<Device>& device,
                                            const AttentionCacheDescriptor& given) {
  return guarded(kCacheName, [&]() -> Result<AttentionCache> {
    AttentionCacheDescriptor descriptor = given;
    resolveDefaults(descriptor);
    MNK_TRY(checkRules(descriptor));
    MNK_TRY(auto storage, CacheStorage::make(device, descriptor));
    const CacheSlots slots{descriptor.capacity, descriptor.whenFull, descriptor.pinned};
    AttentionCache cache;
    cache.state_ = std::make_shared<State>(descriptor, std::move(storage), slots);
    return cache;
  });
}

const AttentionCacheDescriptor& AttentionCache::descriptor() const {
  return state_->descriptor;
}
KVCacheView AttentionCache::view() const {
  return state_->storage.view();
}
std::optional<QuantizedKVCacheView> AttentionCache::quantizedView() const {
  return state_->storage.quantizedView();
}

uint64_t AttentionCache::byteCount() const {
  return state_->storage.bytes();
}
uint64_t AttentionCache::bytesPerToken() const {
  uint64_t bytes = 0;
  for (const uint64_t ofPlane : slotBytes(state_->descriptor)) bytes += ofPlane * state_->descriptor.kvHeads;
  return bytes;
}
int64_t AttentionCache::bytesSaved() const {
  const AttentionCacheDescriptor& d = state_->descriptor;
  const uint64_t asHalves = (uint64_t{d.headDim} + d.valueHeadDim) * d.kvHeads * byteSize(DType::f16);
  const auto savedPerToken = static_cast<int64_t>(asHalves) - static_cast<int64_t>(bytesPerToken());
  return savedPerToken * d.capacity * d.sequences;
}

Result<uint64_t> AttentionCache::nextPosition(uint32_t sequence) const {
  return guarded(kCacheName, [&]() -> Result<uint64_t> {
    MNK_TRY(const auto cursor, state_->cursors.at(sequence));
    return cursor.next;
  });
}
Result<uint64_t> AttentionCache::count(uint32_t sequence) const {
  return guarded(kCacheName, [&]() -> Result<uint64_t> {
    MNK_TRY(const auto cursor, state_->cursors.at(sequence));
    return state_->cursors.slots().count(cursor);
  });
}
bool AttentionCache::isSuspect(uint32_t sequence) const {
  const auto cursor = guarded(kCacheName, [&] { return state_->cursors.at(sequence); });
  return !cursor || cursor->suspectFrom;
}
bool AttentionCache::isSuspect() const {
  return state_->cursors.isAnySuspect();
}

std::string AttentionCache::text() const {
  const AttentionCacheDescriptor& d = state_->descriptor;
  std::string text = shapeText(d);
  text += d.sequences == 1 ? fmt::format(", 1 sequence at position {}", *nextPosition())
                           : fmt::format(", {} sequences", d.sequences);
  text += fmt::format(", {} that {} when full", countText(d.capacity, "slot"),
                      d.whenFull == KVWrap::ring ? "overwrite the oldest" : "fail");
  if (d.pinned != 0) text += fmt::format(" but for the first {}", d.pinned);
  if (d.slidingWindow) text += fmt::format(", a window of {}", d.slidingWindow->window);
  return text + ", " + bytesText(byteCount());
}

Result<CacheCursors::Recording*> AttentionCache::State::join(const std::shared_ptr<State>& self,
                                                             CommandEncoder& encoder,
                                                             std::span<const uint32_t> sequences) {
  const auto& memory = self->storage.view().keys.buffer();
  if (const auto& device = encoder.device(); device && !memory->isOf(*device)) {
    return Error{.op = std::string(kCacheName),
                 .what = "the cache is of another device than the encoder",
                 .got = fmt::format("a cache on {}", memory->device() ? memory->device()->name() : "no device"),
                 .expected = fmt::format("a cache on the encoder's device object, {}", device->name()),
                 .fix = "Make the cache on the device whose encoder uses it."};
  }
  return CacheCursors::join({self, &self->cursors}, encoder, sequences);
}

Result<void> AttentionCache::append(CommandEncoder& encoder, const CacheStep& step) {
  return State::call(*this, ResolvedStep::Kind::append, encoder, step);
}
Result<void> AttentionCache::attend(CommandEncoder& encoder, const CacheStep& step) const {
  return State::call(*this, ResolvedStep::Kind::attend, encoder, step);
}
Result<void> AttentionCache::appendAndAttend(CommandEncoder& encoder, const CacheStep& step) {
  return State::call(*this, ResolvedStep::Kind::appendAndAttend, encoder, step);
}

Result<void> AttentionCache::append(CommandEncoder& encoder, HeadsView keys, HeadsView values, uint32_t sequence) {
  return append(encoder, {.keys = std::move(keys), .values = std::move(values), .sequences = {sequence}});
}
Result<void> AttentionCache::attend(CommandEncoder& encoder, HeadsView queries, AttentionResults results,
                                    AttentionOptions options, uint32_t sequence) const {
  return attend(encoder, {.queries = std::move(queries),
                          .results = std::move(results),
                          .options = std::move(options),
                          .sequences = {sequence}});
}

Result<void> AttentionCache::dequantize(CommandEncoder& encoder, const std::optional<Tensor>& keys,
                                        const std::optional<Tensor>& values, uint64_t position, uint32_t given,
                                        KVDomain domain) const {
  constexpr std::string_view kDequantize = "AttentionCache.dequantize";
  const auto again = [&]() -> CommandEncoder::Call {
    return [=, cache = *this](CommandEncoder& next) {
      return cache.dequantize(next, keys, values, position, given, domain);
    };
  };
  return cacheCall(encoder, kDequantize, again, [&]() -> Result<void> {
    MNK_TRY(const uint32_t sequence, state_->cursors.numberOf(given));
    MNK_TRY(auto recording, State::join(state_, encoder, {&sequence, 1}));
    MNK_TRY(auto planned, state_->storage.planDequantize(keys, values, sequence, position, domain));
    const HeadsView target(keys ? *keys : *values);
    MNK_TRY(checkOneSequence(target));
    const uint64_t tokens = target.resolved().tokens;
    MNK_TRY(checkHeld(state_->cursors.slots(), recording->after(sequence), position, tokens, sequence));
    MNK_TRY(encoder.encode(planned));
    recording->read(position, position + tokens, sequence);
    return {};
  });
}

Result<void> AttentionCache::truncate(uint64_t position, uint32_t sequence) {
  return guarded(kCacheName, [&] { return state_->cursors.truncate(position, sequence); });
}
Result<void> AttentionCache::reset(uint32_t sequence) {
  return truncate(0, sequence);
}
void AttentionCache::reset() {
  state_->cursors.reset();
}

}  // namespace mnk
