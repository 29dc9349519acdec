#include "Cache/QuantizedStorageRules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "Ops/Common/VectorLanes.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
