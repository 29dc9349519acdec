#include "Cache/AttentionCacheRules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "Ops/Common/HeadsMemory.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"

namespace mnk {

namespace {

using Op = AttentionCacheDescriptor;

auto largestExtent(const Op& op) {
  return std::max({op.kvHeads, op.headDim, op.valueHeadDim, op.capacity, op.sequences});
}

bool hasElements(const Op& op) {
  return !op.quantized || op.quantized->planes != KVQuantizedPlanes::both;
}

constexpr Rule<Op> kRules[] = {
    INVALID_IF(op.slidingWindow && op.slidingWindow->window == 0, "a sliding window sees nothing", "a window of 0",
               "at least 1 position, the row's own", "Pass the model's window, or leave the sliding window out."),

    INVALID_IF(op.kvHeads == 0 || op.headDim == 0 || op.capacity == 0 || op.sequences == 0,
               "the cache would hold nothing",
               fmt::format("kvHeads {}, headDim {}, capacity {}, sequences {}", op.kvHeads, op.headDim, op.capacity,
                           op.sequences),
               "at least 1 of each", "Give every extent a size."),

    INVALID_IF(largestExtent(op) >= kMaxKVExtent, "an extent is too large for the kernels",
               fmt::format("{}", largestExtent(op)), "less than 2^31 on every axis", "Split the cache."),

    INVALID_IF(op.slidingWindow.has_value() && op.capacity < op.pinned + op.slidingWindow->slots(),
               "the capacity is too small for the sliding window", fmt::format("{}", op.capacity),
               fmt::format("at least {}: {} pinned, a window of {}, and {} for a step of {} rows or a draft of {}",
                           op.pinned + op.slidingWindow->slots(), op.pinned, op.slidingWindow->window,
                           op.slidingWindow->slots() - op.slidingWindow->window, op.slidingWindow->maxRows,
                           op.slidingWindow->maxDraft),
               "Leave the capacity out, and the cache sizes itself."),

    INVALID_IF(op.latentDim != 0 && op.valueHeadDim != op.latentDim, "values are not the latent part of keys",
               fmt::format("valueHeadDim {}, latentDim {}", op.valueHeadDim, op.latentDim), "the same of both",
               "Leave valueHeadDim out."),

    INVALID_IF(hasElements(op) && !isFloat(op.dtype), "the cache cannot store this dtype", name(op.dtype),
               "f32, f16 or bf16", "Choose a floating-point dtype."),

    INVALID_IF(op.whenFull > KVWrap::ring, "the cache does not say what happens when it is full",
               fmt::format("{}", static_cast<uint32_t>(op.whenFull)), "linear or ring", "Use a value of KVWrap."),

    INVALID_IF(op.pinned != 0 && (op.whenFull != KVWrap::ring || op.pinned >= op.capacity),
               "the cache pins too many positions",
               fmt::format("{} pinned in a {} of {}", op.pinned, op.whenFull == KVWrap::ring ? "ring" : "linear cache",
                           op.capacity),
               "fewer than the capacity of a ring, and none in a linear cache",
               "Pin fewer positions, or let a larger cache overwrite the oldest."),

    INVALID_IF(!op.isStorageOnly &&
                   !hasAttentionKernel(op.headDim, op.valueHeadDim, op.quantized.has_value(), op.latentDim != 0),
               "there is no attention kernel for these head dims",
               fmt::format("{} of keys and {} of values", op.headDim, op.valueHeadDim),
               attentionDimsText(op.quantized.has_value(), op.latentDim != 0),
               "Choose such head dims, or make the cache for storage only if nothing attends to it."),
};

}  // namespace

Error cacheError(std::string_view what, std::string got, std::string expected, std::string_view fix) {
  return {.op = std::string(kCacheName),
          .what = std::string(what),
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = std::string(fix)};
}

void resolveDefaults(AttentionCacheDescriptor& d) {
  if (d.valueHeadDim == 0) d.valueHeadDim = d.latentDim != 0 ? d.latentDim : d.headDim;
  if (d.quantized) {
    if (!hasElements(d)) d.dtype = DType::u8;
    if (!d.quantized->hasQuantizedKeys()) d.quantized->keyBits = 0;
    if (!d.quantized->hasQuantizedValues()) d.quantized->valueBits = 0;
  }
  if (!d.slidingWindow) return;
  d.whenFull = KVWrap::ring;
  if (d.slidingWindow->maxRows == 0) d.slidingWindow->maxRows = SlidingWindow().maxRows;
  // If the capacity of a ring exceeds 32 bits, it is clamped, and the rules reject it.
  if (d.capacity == 0)
    d.capacity = static_cast<uint32_t>(std::min<uint64_t>(d.pinned + d.slidingWindow->slots(), UINT32_MAX));
}

std::span<const Rule<AttentionCacheDescriptor>> attentionCacheRules() {
  return kRules;
}

Result<void> checkRules(const AttentionCacheDescriptor& descriptor) {
  MNK_TRY(checkRules(attentionCacheRules(), descriptor, kCacheName));
  if (descriptor.quantized) MNK_TRY(checkRules(quantizedStorageRules(), descriptor, kCacheName));
  return {};
}

namespace {

using Op = AttentionCacheDescriptor;

// A tensor with a number per channel, and its requirements.
struct Channels {
  std::string_view name;
  const std::optional<Tensor>& tensor;
  uint64_t headDim;
  bool divides;
  bool areCoded;  // whether the vectors that it applies to are quantized
};

std::array<Channels, 3> channels(const Op& op) {
  const KVQuantizedStorage& q = *op.quantized;
  return {{{"keyMeans", q.keyMeans, op.headDim, false, q.hasQuantizedKeys()},
           {"valueMeans", q.valueMeans, op.valueHeadDim, false, q.hasQuantizedValues()},
           {"keyChannelScales", q.keyChannelScales, op.headDim, true, q.hasQuantizedKeys()}}};
}

bool hasChannels(const Op& op) {
  const auto all = channels(op);
  return std::any_of(all.begin(), all.end(), [](const Channels& c) { return c.tensor.has_value(); });
}

std::string_view firstOfElements(const Op& op) {
  for (const Channels& c : channels(op)) {
    if (c.tensor && !c.areCoded) return c.name;
  }
  return {};
}

bool isShaped(const Op& op, const Channels& c) {
  if (!c.tensor) return true;
  const Shape& shape = c.tensor->shape();
  return *c.tensor && c.tensor->dtype() == DType::f32 && shape.rank() == 2 && shape[0] == op.kvHeads &&
         shape[1] == c.headDim;
}

std::optional<Channels> firstMisshapen(const Op& op) {
  for (const Channels& c : channels(op)) {
    if (!isShaped(op, c)) return c;
  }
  return std::nullopt;
}

// The first invalid number and its index. Memory that cannot be read is reported when it is copied.
std::string firstUnusable(const Channels& c) {
  if (!c.tensor) return {};
  std::vector<float> numbers(c.tensor->shape().elementCount());
  if (!c.tensor->read(std::as_writable_bytes(std::span(numbers)))) return {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    // A divisor must be normal, because a device may flush subnormal numbers to 0.
    if (c.divides ? std::isnormal(numbers[i]) : std::isfinite(numbers[i])) continue;
    return fmt::format("{} of head {}, channel {}, in {}", numbers[i], i / c.headDim, i % c.headDim, c.name);
  }
  return {};
}

std::string firstUnusable(const Op& op) {
  for (const Channels& c : channels(op)) {
    if (std::string found = firstUnusable(c); !found.empty()) return found;
  }
  return {};
}

// Why keys, or else values, cannot be quantized. A dense plane needs a head dim that the codec of the other plane
// supports.
std::optional<Error> codecError(const Op& op) {
  const KVQuantizedStorage& q = *op.quantized;
  MNK_TRY(sizes(q.hasQuantizedKeys() ? q.keyCodec() : q.valueCodec(), op.headDim));
  MNK_TRY(sizes(q.hasQuantizedValues() ? q.valueCodec() : q.keyCodec(), op.valueHeadDim));
  return std::nullopt;
}

bool canScale(const Op& op) {
  const KVQuantizedStorage& q = *op.quantized;
  return (!q.hasQuantizedKeys() || q.keyCodec().canScale(op.headDim)) &&
         (!q.hasQuantizedValues() || q.valueCodec().canScale(op.valueHeadDim));
}

constexpr Rule<Op> kQuantizedStorageRules[] = {
    INVALID_IF(op.quantized->planes > KVQuantizedPlanes::values, "what is quantized is not known",
               fmt::format("planes {}", static_cast<uint32_t>(op.quantized->planes)), "both, keys or values",
               "Pass one of the choices that KVQuantizedPlanes names."),

    INVALID_IF(codecError(op), "the codec does not have these bits or this head dim", codecError(op)->got,
               codecError(op)->expected, "Choose other bits, another codec, or a dense cache."),

    INVALID_IF(!VectorLanes::canShare(op.headDim, op.valueHeadDim), "head dims of keys and values are too different",
               fmt::format("{} and {}", op.headDim, op.valueHeadDim), "at most 32 times the other",
               "Keep keys and values in separate caches, each with its own op."),

    INVALID_IF(!canScale(op), "the scale factor cannot be used",
               fmt::format("{} for {} at head dims {} and {}", op.quantized->scaleFactor, name(op.quantized->codec),
                           op.headDim, op.valueHeadDim),
               "1, or for mlx1 and mlx1Unrotated at head dims of 512 a number from 1e-6 to 1e6",
               "Leave the scale factor at 1."),

    INVALID_IF(!op.quantized->options.hasSearch(), "the number of candidates is not supported",
               fmt::format("{}", op.quantized->options.candidates), "1, 5 or 17",
               "Use 5, or 17 for a little less error."),

    INVALID_IF(!op.quantized->options.areKnown(), kUnknownOption, optionsText(op.quantized->options), kKnownOptions,
               kNameOptions),

    INVALID_IF(op.quantized->codec != KVCodec::Name::turbo && hasChannels(op),
               "the codec has no means or channel scales", name(op.quantized->codec), "turbo",
               "Use turbo, or leave means and channel scales out."),

    INVALID_IF(!firstOfElements(op).empty(), "means or channel scales belong to dense vectors", firstOfElements(op),
               "those of quantized vectors", "Leave them out, or let the storage code keys and values both."),

    INVALID_IF(firstMisshapen(op), "means or channel scales do not match the cache",
               fmt::format("{} as {}", firstMisshapen(op)->name, firstMisshapen(op)->tensor->text()),
               fmt::format("f32 [{}, {}] for keys, f32 [{}, {}] for values", op.kvHeads, op.headDim, op.kvHeads,
                           op.valueHeadDim),
               "Pass one f32 for every channel of every head."),

    INVALID_IF(!firstUnusable(op).empty(), "means or channel scales hold a number that cannot be used",
               firstUnusable(op), "finite means, and finite channel scales other than 0",
               "Measure them again from finite keys and values; use 1 as the scale of a channel that is always 0."),
};

}  // namespace

std::span<const Rule<AttentionCacheDescriptor>> quantizedStorageRules() {
  return kQuantizedStorageRules;
}

}  // namespace mnk
