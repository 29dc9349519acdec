#include "Cache/QuantizedStorageRules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "Ops/VectorLanes.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Descriptor = AttentionCacheDescriptor;

// A tensor of numbers for each channel, with what it must be.
struct Channels {
  std::string_view name;
  const std::optional<Tensor>& tensor;
  uint64_t headDim;
  bool divides;
};

std::array<Channels, 3> channels(const Descriptor& d) {
  const KVQuantizedStorage& q = *d.quantized;
  return {{{"keyMeans", q.keyMeans, d.headDim, false},
           {"valueMeans", q.valueMeans, d.valueHeadDim, false},
           {"keyChannelScales", q.keyChannelScales, d.headDim, true}}};
}

bool hasChannels(const Descriptor& d) {
  const auto all = channels(d);
  return std::any_of(all.begin(), all.end(), [](const Channels& c) { return c.tensor.has_value(); });
}

bool isShaped(const Descriptor& d, const Channels& c) {
  if (!c.tensor) return true;
  const Shape& shape = c.tensor->shape();
  return *c.tensor && c.tensor->dtype() == DType::f32 && shape.rank() == 2 && shape[0] == d.kvHeads &&
         shape[1] == c.headDim;
}

// The first number that cannot be used, with where it is. Memory that cannot be read is found when it is copied.
std::string firstUnusable(const Channels& c) {
  if (!c.tensor) return {};
  std::vector<float> numbers(c.tensor->shape().elementCount());
  if (!c.tensor->read(std::as_writable_bytes(std::span(numbers)))) return {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    // What is divided by must not count as 0 where a device flushes numbers that are smaller still.
    if (c.divides ? std::isnormal(numbers[i]) : std::isfinite(numbers[i])) continue;
    return fmt::format("{} of head {}, channel {}, in {}", numbers[i], i / c.headDim, i % c.headDim, c.name);
  }
  return {};
}

std::string firstUnusable(const Descriptor& d) {
  for (const Channels& c : channels(d)) {
    if (std::string found = firstUnusable(c); !found.empty()) return found;
  }
  return {};
}

// Why keys, or else values, cannot be coded.
std::optional<Error> codecError(const Descriptor& d) {
  if (auto keys = sizes(d.quantized->keyCodec(), d.headDim); !keys) return std::move(keys).error();
  if (auto values = sizes(d.quantized->valueCodec(), d.valueHeadDim); !values) return std::move(values).error();
  return std::nullopt;
}

constexpr Rule<Descriptor> kRules[] = {
    {"the codec cannot code such vectors", [](const Descriptor& d) { return !codecError(d); },
     [](const Descriptor& d) { return codecError(d)->got; },
     [](const Descriptor& d) { return codecError(d)->expected; },
     "Choose other bits, the other codec, or a dense cache."},

    {"head dims of keys and values are too different",
     [](const Descriptor& d) { return VectorLanes::canShare(d.headDim, d.valueHeadDim); },
     [](const Descriptor& d) { return fmt::format("{} and {}", d.headDim, d.valueHeadDim); },
     [](const Descriptor&) { return std::string("at most 32 times the other"); },
     "Keep keys and values in caches of their own memory, each with an op of its own."},

    {"the scale factor cannot be used",
     [](const Descriptor& d) {
       return d.quantized->keyCodec().canScale(d.headDim) && d.quantized->valueCodec().canScale(d.valueHeadDim);
     },
     [](const Descriptor& d) {
       return fmt::format("{} for {} at head dims {} and {}", d.quantized->scaleFactor, name(d.quantized->codec),
                          d.headDim, d.valueHeadDim);
     },
     [](const Descriptor&) { return std::string("1, or for mlx1 at head dims of 512 a number from 1e-6 to 1e6"); },
     "Leave the scale factor at 1."},

    {"there is no search with so many candidates", [](const Descriptor& d) { return d.quantized->options.hasSearch(); },
     [](const Descriptor& d) { return fmt::format("{}", d.quantized->options.candidates); },
     [](const Descriptor&) { return std::string("1, 5 or 17"); }, "Use 5, or 17 for a little less error."},

    {"the codec has no means or channel scales",
     [](const Descriptor& d) { return d.quantized->codec == KVCodecName::turbo || !hasChannels(d); },
     [](const Descriptor& d) { return std::string(name(d.quantized->codec)); },
     [](const Descriptor&) { return std::string("turbo"); }, "Use turbo, or leave means and channel scales out."},

    {"means or channel scales do not match the cache",
     [](const Descriptor& d) {
       const auto all = channels(d);
       return std::all_of(all.begin(), all.end(), [&](const Channels& c) { return isShaped(d, c); });
     },
     [](const Descriptor& d) {
       for (const Channels& c : channels(d)) {
         if (!isShaped(d, c)) return fmt::format("{} as {}", c.name, c.tensor->text());
       }
       return std::string();
     },
     [](const Descriptor& d) {
       return fmt::format("f32 [{}, {}] for keys, f32 [{}, {}] for values", d.kvHeads, d.headDim, d.kvHeads,
                          d.valueHeadDim);
     },
     "Pass one f32 for every channel of every head."},

    {"means or channel scales hold a number that cannot be used",
     [](const Descriptor& d) { return firstUnusable(d).empty(); }, [](const Descriptor& d) { return firstUnusable(d); },
     [](const Descriptor&) { return std::string("finite means, and finite channel scales other than 0"); },
     "Measure them anew from finite keys and values; use 1 as the scale of a channel that is always 0."},
};

}  // namespace

std::span<const Rule<AttentionCacheDescriptor>> quantizedStorageRules() {
  return kRules;
}

}  // namespace mnk
