// What a valid FlashDecode makes of the arena's images, by the reference of the core's tests.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "FlashDecodeCall.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"

namespace mnk::fuzz {

namespace {

using Spec = FlashDecodeSpec;
using Vector = std::vector<double>;

Tensor tensorOf(const TensorSpec& spec) {
  return test::planTensor(static_cast<DType>(spec.dtype), *Shape::make(spec.shape));
}
std::optional<Tensor> tensorOf(const std::optional<TensorSpec>& spec) {
  return spec ? std::optional(tensorOf(*spec)) : std::nullopt;
}

QuantizedKVPlane planeOf(const TensorSpec& codes, const QuantizedPlaneSpec& plane) {
  return {.codec = {static_cast<KVCodecName>(plane.codec.name), plane.codec.bits,
                    plane.codec.scale_factor == 0 ? 1 : plane.codec.scale_factor},
          .codes = tensorOf(codes),
          .scales = tensorOf(*plane.scales),
          .means = tensorOf(plane.means),
          .channelScales = tensorOf(plane.channelScales)};
}

test::OperandBytes bytesOf(const Spec& spec, Arena& arena) {
  test::OperandBytes bytes;
  const auto add = [&](const std::string& name, const std::optional<TensorSpec>& tensor) {
    if (!tensor) return;
    const auto image = arena.image(*tensor);
    bytes[name].assign(image.begin(), image.begin() + static_cast<ptrdiff_t>(tensor->bytes()));
  };
  const auto addPlane = [&](const std::string& name, const std::optional<TensorSpec>& vectors,
                            const QuantizedPlaneSpec& plane) {
    if (!spec.hasQuantized) return add(name + "s", vectors);
    add(name + " codes", vectors), add(name + " scales", plane.scales), add(name + " means", plane.means);
    add(name + " channel scales", plane.channelScales);
  };
  add("queries", spec.queries);
  addPlane("key", spec.cache.write.keyCache, spec.cache.keys);
  addPlane("value", spec.cache.write.valueCache, spec.cache.values);
  add("mask", spec.used(spec.mask)), add("slopes", spec.used(spec.slopes)), add("sinks", spec.used(spec.sinks));
  return bytes;
}

// Means of values are added to all results, those of no key included.
bool hasFiniteMeans(const Spec& spec, Arena& arena) {
  if (!spec.hasQuantized || !spec.cache.values.means) return true;
  const Vector means = valuesOf(arena, *spec.cache.values.means);
  return std::all_of(means.begin(), means.end(), [](double mean) { return std::isfinite(mean); });
}

// Writes numbers to an image, each of which may be off by its slack. A large one, or a NaN, allows anything.
void store(Arena& arena, const std::optional<TensorSpec>& tensor, const Vector& values, const Vector& slack) {
  if (!tensor) return;
  const auto dtype = static_cast<DType>(tensor->dtype);
  const auto image = arena.image(*tensor);
  for (uint64_t e = 0; e < values.size(); ++e) {
    const uint64_t bits = test::nearestBits(dtype, values[e]);
    std::memcpy(&image[e * tensor->elementBytes()], &bits, tensor->elementBytes());
  }
  arena.allow(*tensor, [=](uint64_t element, uint64_t, uint64_t got) {
    if (std::isnan(values[element]) || !(slack[element] < 1e3)) return true;
    const double digit = dtype == DType::f32 ? 0x1p-20 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
    const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
    const double value = values[element];
    return std::abs(test::valueOf(dtype, got) - value) <= slack[element] + digit * std::abs(value) + least;
  });
}

}  // namespace

uint64_t writtenOf(const mnk_attended_sequence& attended) {
  return attended.highest == 0 ? attended.length : attended.highest;
}

uint64_t rowsOf(const Spec& spec, const mnk_attended_sequence& attended) {
  return attended.rows == 0 ? queryDims(spec).rows : attended.rows;
}

uint64_t mostHeld(const Spec& spec) {
  const mnk_kv_cache_view& view = spec.view();
  const CacheDims dims = cacheDims(*spec.cache.write.keyCache, view.layout);
  const test::CacheGeometry cache{
      .capacity = dims.capacity, .wrap = static_cast<KVWrap>(view.wrap), .pinned = view.pinned};
  size_t most = 0;
  for (const auto& [sequence, length, highest, rows] : spec.sequences) {
    most = std::max(most, test::heldKeys(cache, {sequence, length, highest, rows}).size());
  }
  return most;
}

FlashDecode referenceOp(const Spec& spec) {
  const KVCacheWriteSpec& memory = spec.cache.write;
  const mnk_kv_cache_view& view = spec.view();
  const mnk_attention_options options = spec.usedOptions();
  const auto layout = static_cast<KVLayout>(view.layout);
  const auto wrap = static_cast<KVWrap>(view.wrap);
  FlashDecode op;
  op.queries = referenceSource(*spec.queries, spec.queriesView, MNK_TOKEN_MAJOR);
  op.options = {.scale = options.scale,
                .isCausal = !options.is_bidirectional,
                .window = options.window,
                .windowSeesPinned = options.window_sees_pinned,
                .softcap = options.softcap,
                .mask = tensorOf(spec.used(spec.mask)),
                .slopes = tensorOf(spec.used(spec.slopes)),
                .sinks = tensorOf(spec.used(spec.sinks))};
  for (const auto& [sequence, length, highest, rows] : spec.sequences) {
    op.sequences.push_back({sequence, length, highest, rows});
  }
  if (spec.hasQuantized) {
    op.over = QuantizedKVCacheView{.keys = planeOf(*memory.keyCache, spec.cache.keys),
                                   .values = planeOf(*memory.valueCache, spec.cache.values),
                                   .layout = layout,
                                   .wrap = wrap,
                                   .pinned = view.pinned,
                                   .latentDim = view.latent_dim};
  } else {
    op.over = KVCacheView{.keys = tensorOf(*memory.keyCache),
                          .values = tensorOf(*memory.valueCache),
                          .layout = layout,
                          .wrap = wrap,
                          .pinned = view.pinned,
                          .latentDim = view.latent_dim};
  }
  return op;
}

void applyDecode(const Spec& spec, Arena& arena) {
  const bool hasMeans = hasFiniteMeans(spec, arena);
  // What f32 loses, or f16 where matrices may be of halves.
  const bool mayUseHalves = arena.hasGPUKernels() && spec.queries->dtype != MNK_F32 &&
                            (spec.hasQuantized || spec.cache.write.keyCache->dtype == MNK_F16);
  const double precision = mayUseHalves ? 0x1p-11 : 1e-6;
  Vector into, intoSlack, sums, sumsSlack, stats, statsSlack, logs, logsSlack;
  for (const test::AttendedRow& row : test::attended(referenceOp(spec), bytesOf(spec, arena))) {
    // Operands that share memory may hold anything, of which nothing is told here.
    const bool isTold = (std::isfinite(row.logSumExp) || row.logSumExp == -INFINITY) && std::isfinite(row.magnitude) &&
                        std::isfinite(row.largestValue) && hasMeans;
    // Codes are multiplied in their own domain, where elements are no larger than the vector.
    const double scoreSlack = precision * (8 + row.magnitude * (spec.hasQuantized ? 8 : 1));
    // A factor of e^slack in a weight is a part of that size of all values that it weighs.
    const double relative = !isTold ? INFINITY : (row.seesKeys ? 2 * scoreSlack + 1e-5 : 0);
    const double emptySlack = isTold ? 0 : INFINITY;
    // The sum that results are divided by: the weight of a sink included.
    const double divisor = std::exp(row.logSumExp - row.largest);
    for (const double number : row.output) {
      into.push_back(number);
      intoSlack.push_back(row.seesKeys ? relative * row.largestValue * row.sum / divisor : emptySlack);
      sums.push_back(row.seesKeys ? number * divisor : 0);
      sumsSlack.push_back(row.seesKeys ? relative * row.largestValue * row.sum : emptySlack);
    }
    stats.push_back(row.seesKeys ? row.largest * std::numbers::log2e : 0), stats.push_back(row.sum);
    // Where there is no key, the largest score says nothing.
    statsSlack.push_back(row.seesKeys && isTold ? scoreSlack * 2 : INFINITY);
    statsSlack.push_back(isTold ? relative * row.sum : INFINITY);
    logs.push_back(row.logSumExp), logsSlack.push_back(relative);
  }
  store(arena, spec.into, into, intoSlack);
  store(arena, spec.sums, sums, sumsSlack);
  store(arena, spec.stats, stats, statsSlack);
  store(arena, spec.logSumExp, logs, logsSlack);
  if (spec.scratch) arena.allow(*spec.scratch, [](uint64_t, uint64_t, uint64_t) { return true; });
}

}  // namespace mnk::fuzz
