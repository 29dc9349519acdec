#include <algorithm>

#include "Cache/AttentionCacheRules.hpp"
#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/Generated/KVCacheWrite.hpp"
#include "Ops/RotaryAppend/RotaryAppend.hpp"
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

AttentionCache::AttentionCache(const AttentionCache&) = default;

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

namespace {

using Descriptor = AttentionCacheDescriptor;

Result<Tensor> makeElements(const std::shared_ptr<Device>& device, const Descriptor& d, uint64_t headDim) {
  MNK_TRY(auto shape, Shape::make({d.sequences, d.kvHeads, d.capacity, headDim}));
  return Tensor::undefined(device, d.dtype, shape);
}

// Replaces the tensor by a private copy.
Result<void> freeze(const std::shared_ptr<Device>& device, std::optional<Tensor>& tensor) {
  if (!tensor) return {};
  MNK_TRY(auto copy, Tensor::zeros(device, tensor->dtype(), tensor->shape()));
  std::vector<std::byte> bytes(tensor->byteCount());
  MNK_TRY(tensor->read(bytes));
  MNK_TRY(copy.write(bytes));
  tensor = std::move(copy);
  return {};
}

Result<QuantizedKVCacheView> makeQuantized(const std::shared_ptr<Device>& device, Descriptor& d) {
  const auto plane = [&](bool isCoded, const KVCodec& codec, uint64_t headDim) -> Result<QuantizedKVPlane> {
    if (isCoded) return QuantizedKVPlane::undefined(device, codec, d.kvHeads, headDim, d.capacity, d.sequences);
    MNK_TRY(auto elements, makeElements(device, d, headDim));
    return QuantizedKVPlane{.codes = elements};
  };
  MNK_TRY(auto keys, plane(d.quantized->hasQuantizedKeys(), d.quantized->keyCodec(), d.headDim));
  MNK_TRY(auto values, plane(d.quantized->hasQuantizedValues(), d.quantized->valueCodec(), d.valueHeadDim));
  for (auto* tensor : {&d.quantized->keyMeans, &d.quantized->valueMeans, &d.quantized->keyChannelScales}) {
    MNK_TRY(freeze(device, *tensor));
  }
  keys.means = d.quantized->keyMeans;
  keys.channelScales = d.quantized->keyChannelScales;
  values.means = d.quantized->valueMeans;
  return QuantizedKVCacheView{.keys = keys,
                              .values = values,
                              .layout = KVLayout::headMajor,
                              .wrap = d.whenFull,
                              .pinned = d.pinned,
                              .latentDim = d.latentDim};
}

Result<KVCacheView> makeDense(const std::shared_ptr<Device>& device, const Descriptor& d) {
  MNK_TRY(auto keys, makeElements(device, d, d.headDim));
  MNK_TRY(auto values, makeElements(device, d, d.valueHeadDim));
  return KVCacheView{.keys = keys,
                     .values = values,
                     .layout = KVLayout::headMajor,
                     .wrap = d.whenFull,
                     .pinned = d.pinned,
                     .latentDim = d.latentDim};
}

// Views a plane of slots as 16-bit floats, which a write between equal types copies bit for bit. This works because
// codes take an even number of bytes, and a scale or an element takes two or four.
Result<Tensor> asHalves(const Tensor& plane, uint64_t heads, uint64_t capacity) {
  const uint64_t sequences = plane.shape()[0];
  MNK_TRY(auto shape, Shape::make({sequences, heads, capacity, plane.byteCount() / (sequences * heads * capacity)}));
  auto bytes = Tensor::over(plane.buffer(), DType::u8, shape, plane.byteOffset());
  return bytes ? bytes->viewedAs(DType::f16) : bytes;
}

// Slots of one sequence of a plane as the source of a write; or of several sequences, viewed as one sequence with more
// heads.
HeadsView slotsOf(const Tensor& plane, uint64_t sequence, const SlotRun& slots, uint64_t sequences = 1) {
  const Shape& shape = plane.shape();
  return {plane,
          {.tokens = slots.count,
           .heads = sequences * shape[1],
           .headDim = shape[3],
           .offset = (sequence * shape[1] * shape[2] + slots.begin) * shape[3],
           .tokenStride = shape[3],
           .headStride = shape[2] * shape[3]}};
}

// The planes of several sequences, viewed as one sequence with more heads.
Result<Tensor> headsOf(const Tensor& plane, uint64_t sequence, uint64_t sequences) {
  std::vector<uint64_t> extents(plane.shape().extents().begin() + 1, plane.shape().extents().end());
  extents[0] *= sequences;
  MNK_TRY(auto shape, Shape::make(extents));
  MNK_TRY(auto some, plane.slice(sequence, sequences));
  return some.reshaped(shape);
}
Result<QuantizedKVPlane> headsOf(QuantizedKVPlane plane, uint64_t sequence, uint64_t sequences) {
  MNK_TRY(auto codes, headsOf(plane.codes, sequence, sequences));
  if (!plane.isDense()) {
    MNK_TRY(auto scales, headsOf(plane.scales, sequence, sequences));
    plane.scales = std::move(scales);
  }
  plane.codes = std::move(codes);
  return plane;
}

}  // namespace

Result<CacheStorage> CacheStorage::make(const std::shared_ptr<Device>& device, AttentionCacheDescriptor& descriptor) {
  CacheStorage storage;
  if (descriptor.quantized) {
    MNK_TRY(auto quantized, makeQuantized(device, descriptor));
    storage.view_ = quantized.codes();
    storage.quantized_ = std::move(quantized);
    storage.options_ = descriptor.quantized->options;
  } else {
    MNK_TRY(auto dense, makeDense(device, descriptor));
    storage.view_ = std::move(dense);
  }
  // A commit is refused if others have changed what its encoder uses of the cache.
  for (const auto& plane : storage.planes()) {
    if (plane) plane->buffer()->setOrdered();
  }
  return storage;
}

CacheStorage::Planes CacheStorage::planes() const {
  if (!quantized_) return {view_.keys, std::nullopt, view_.values, std::nullopt};
  const auto scales = [](const QuantizedKVPlane& plane) {
    return plane.isDense() ? std::optional<Tensor>() : std::optional(plane.scales);
  };
  return {quantized_->keys.codes, scales(quantized_->keys), quantized_->values->codes, scales(*quantized_->values)};
}

uint64_t CacheStorage::bytes() const {
  uint64_t bytes = 0;
  for (const auto& plane : planes()) bytes += plane ? plane->byteCount() : 0;
  return bytes;
}

CacheStorage::Append CacheStorage::append(const HeadsView& keys, const HeadsView& values, uint32_t sequence,
                                          uint64_t position) const {
  if (!quantized_) {
    return KVCacheWrite{.keys = keys, .values = values, .into = view_, .sequence = sequence, .position = position};
  }
  return KVCacheQuantize{.keys = keys,
                         .values = values,
                         .into = *quantized_,
                         .sequence = sequence,
                         .position = position,
                         .options = options_};
}

std::vector<CacheStorage::Append> CacheStorage::appendRows(const HeadsView& keys, const HeadsView& values,
                                                           std::span<const uint32_t> sequences,
                                                           std::span<const uint32_t> slots) const {
  std::vector<Append> appends;
  for (size_t begin = 0; begin == 0 || begin < sequences.size(); begin += KVCacheWrite::kMaxRows) {
    const size_t count = std::min<size_t>(KVCacheWrite::kMaxRows, sequences.size() - begin);
    const auto part = [&](std::span<const uint32_t> indices) {
      return std::vector<uint32_t>(indices.begin() + begin, indices.begin() + begin + count);
    };
    const auto take = [&](auto& op) {
      op.rows = KVCacheWrite::Rows{part(sequences), part(slots)};
      op.sourceOffset = begin;
      // The last op takes all remaining tokens, so that a source with a different length is rejected.
      if (begin + count < sequences.size()) op.tokens = count;
    };
    std::visit(take, appends.emplace_back(append(keys, values)));
  }
  return appends;
}

Result<Plan> planAppends(std::span<const CacheStorage::Append> appends, const std::optional<MultiRoPE>& rotation,
                         uint64_t firstToken) {
  std::optional<Plan> whole;
  for (const CacheStorage::Append& append : appends) {
    MNK_TRY(auto planned, rotation
                              ? plan(RotaryAppend{.rotation = *rotation, .firstToken = firstToken, .append = append})
                              : std::visit([](const auto& op) { return plan(op); }, append));
    if (whole)
      whole->append(std::move(planned));
    else
      whole = std::move(planned);
  }
  return std::move(*whole);
}

Result<Plan> CacheStorage::planCopy(const CacheStorage& from, const Copied& copied) const {
  const uint64_t source = copied.source, sequences = copied.sequences, length = copied.length, oldest = copied.oldest;
  const KVCacheView& ring = from.view_;
  // Until a ring wraps, positions are in slot order. Afterwards, the part after its pinned slots is rotated.
  const uint64_t inOrder = oldest == 0 ? length : std::min<uint64_t>(length, ring.pinned);
  const uint64_t wrapped = oldest == 0 || length < oldest ? 0 : length - oldest;
  const Planes sources = from.planes(), own = planes();
  Plan whole{.op = std::string(KVCacheWrite::name), .dispatches = {}};
  for (const auto& pair : {std::pair(keys, values), std::pair(keyScales, valueScales)}) {
    std::vector<Tensor> halves, targets;
    for (const Plane plane : {pair.first, pair.second}) {
      if (!own[plane]) continue;
      MNK_TRY(auto sourceHalves, asHalves(*sources[plane], ring.heads(), ring.capacity()));
      MNK_TRY(auto targetHalves, asHalves(*own[plane], view_.heads(), view_.capacity()));
      // The targets alone, which share no memory with the sources.
      MNK_TRY(auto slots, headsOf(targetHalves, copied.target, sequences));
      halves.push_back(std::move(sourceHalves));
      targets.push_back(std::move(slots));
    }
    if (halves.empty()) continue;
    const bool hasBoth = halves.size() == 2;
    KVCacheView into{.keys = targets.front(), .wrap = view_.wrap, .pinned = view_.pinned};
    if (hasBoth) into.values = targets.back();
    const auto add = [&](const SlotRun& slots, KVCacheWrite write) -> Result<void> {
      write.keys = slotsOf(halves.front(), source, slots, sequences);
      if (hasBoth) write.values = slotsOf(halves.back(), source, slots, sequences);
      write.into = into;
      MNK_TRY(auto planned, plan(write));
      whole.append(std::move(planned));
      return {};
    };
    if (inOrder != 0) MNK_TRY(add({0, inOrder}, {}));
    if (wrapped != 0) {
      KVCacheWrite write;
      write.sourceIsRing = true;
      write.sourceOffset = (oldest - ring.pinned) % ring.ringLength();
      write.tokens = wrapped;
      write.position = oldest;
      MNK_TRY(add({ring.pinned, ring.ringLength()}, std::move(write)));
    }
  }
  return whole;
}

bool CacheStorage::hasChannels() const {
  return quantized_ && (quantized_->keys.means || quantized_->keys.channelScales || quantized_->values->means);
}

Result<Plan> CacheStorage::planQuantize(const KVCacheView& source, uint64_t sequence, uint64_t sequences,
                                        const SlotRun& slots) const {
  MNK_TRY(auto keys, headsOf(quantized_->keys, sequence, sequences));
  MNK_TRY(auto values, headsOf(*quantized_->values, sequence, sequences));
  return plan(KVCacheQuantize{.keys = slotsOf(source.keys, sequence, slots, sequences),
                              .values = slotsOf(*source.values, sequence, slots, sequences),
                              .into = {.keys = std::move(keys), .values = std::move(values)},
                              .position = slots.begin,
                              .options = options_});
}

Result<Plan> CacheStorage::planDequantize(const std::optional<Tensor>& keys, const std::optional<Tensor>& values,
                                          uint32_t sequence, uint64_t position, KVDomain domain) const {
  if (!quantized_) {
    return Error{.op = "AttentionCache",
                 .what = "only a quantized cache can be dequantized",
                 .got = fmt::format("a cache of {}", name(view_.keys.dtype())),
                 .expected = "a cache of quantized storage",
                 .fix = "Read the keys and values of a dense cache as they are, at the slots of their positions."};
  }
  return plan(KVCacheDequantize{.from = *quantized_,
                                .sequence = sequence,
                                .position = position,
                                .keys = keys,
                                .values = values,
                                .domain = domain});
}

std::array<uint64_t, 4> slotBytes(const AttentionCacheDescriptor& d) {
  if (!d.quantized) return {d.headDim * byteSize(d.dtype), 0, d.valueHeadDim * byteSize(d.dtype), 0};
  const auto ofPlane = [&](bool isCoded, const KVCodec& codec, uint64_t headDim) -> Result<KVCodecSizes> {
    if (isCoded) return sizes(codec, headDim);
    return KVCodecSizes{.codeBytes = headDim * byteSize(d.dtype)};
  };
  const auto keys = ofPlane(d.quantized->hasQuantizedKeys(), d.quantized->keyCodec(), d.headDim);
  const auto values = ofPlane(d.quantized->hasQuantizedValues(), d.quantized->valueCodec(), d.valueHeadDim);
  if (!keys || !values) return {};
  return {keys->codeBytes, keys->scaleBytes, values->codeBytes, values->scaleBytes};
}

}  // namespace mnk
