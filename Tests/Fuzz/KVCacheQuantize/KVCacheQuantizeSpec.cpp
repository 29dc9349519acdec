#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "Harness/SoftFloat.hpp"
#include "KVCacheQuantizeCall.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;

std::string textOf(std::string_view name, const std::optional<TensorSpec>& tensor) {
  return tensor ? fmt::format("\n  {} {}", name, tensor->text()) : std::string();
}

std::string textOf(std::string_view name, const std::optional<TensorSpec>& codes, const QuantizedPlaneSpec& plane) {
  return fmt::format("\n  {}: codec {} of {} bits, factor {}", name, static_cast<uint32_t>(plane.codec.name),
                     plane.codec.bits, plane.codec.scale_factor) +
         textOf("  codes", codes) + textOf("  scales", plane.scales) + textOf("  means", plane.means) +
         textOf("  channel scales", plane.channelScales);
}

std::string textOf(std::string_view name, const RowSpec& rows) {
  const size_t shown = std::min<size_t>(rows.list.size(), 16);
  return fmt::format("\n  {} of {} {{{}}}{}", name, rows.listCount.value_or(rows.list.size()),
                     fmt::join(rows.list.begin(), rows.list.begin() + static_cast<ptrdiff_t>(shown), ", "),
                     rows.hasList ? "" : ", NULL instead of a list") +
         textOf("  in", rows.tensor);
}

}  // namespace

std::string Spec::text() const {
  const std::string name = isRead ? "KVCacheDequantize" : "KVCacheQuantize";
  if (isNull) return name + ": a NULL descriptor";
  const mnk_kv_cache_write& n = write.numbers;
  std::string text = fmt::format("{} (size {}, tail {}, view size {}):", name, size, tail, viewSize) +
                     textOf("keys", write.keys) + textOf("values", write.values) +
                     textOf("keys of the cache", write.keyCache, keys) +
                     textOf("values of the cache", write.valueCache, values);
  text += fmt::format("\n  source layout {}, cache layout {}, wrap {}, {} pinned\n  sequence {}, position {}",
                      static_cast<uint32_t>(n.source_layout), static_cast<uint32_t>(n.into.layout),
                      static_cast<uint32_t>(n.into.wrap), n.into.pinned, n.sequence, n.position);
  if (isRead) return text + fmt::format("\n  domain {}", static_cast<uint32_t>(domain));
  text +=
      fmt::format("\n  from token {}, {} tokens{}\n  {} candidates, scales {} and {}, not finite {}", n.source_offset,
                  n.has_tokens ? fmt::format("{}", n.tokens) : "all", n.source_is_ring ? " of a ring" : "",
                  options.candidates, static_cast<uint32_t>(options.key_scale),
                  static_cast<uint32_t>(options.value_scale), static_cast<uint32_t>(options.non_finite));
  text += textOf("counts", counts) + textOf("probe", probe);
  return n.has_rows ? text + textOf("sequences", write.sequences) + textOf("positions", write.positions) : text;
}

std::vector<const TensorSpec*> usedTensors(const Spec& spec) {
  std::vector<const TensorSpec*> used;
  const auto add = [&](const std::optional<TensorSpec>& tensor) {
    if (tensor) used.push_back(&*tensor);
  };
  for (const QuantizedPlaneOperands& plane : planesOf(spec)) {
    used.insert(used.end(), {plane.vectors, plane.codes});
    add(plane.plane->scales);
    // Means and channel scales belong to the original domain.
    if (!spec.isRead || spec.domain == MNK_ORIGINAL_DOMAIN) {
      add(plane.plane->means), add(plane.plane->channelScales);
    }
  }
  if (spec.isRead) return used;
  add(spec.counts), add(spec.probe);
  if (spec.write.numbers.has_rows) add(spec.write.sequences.tensor), add(spec.write.positions.tensor);
  return used;
}

mnk_quantized_kv_view madeView(const Spec& spec, Arena& arena, Seeded& random) {
  const auto made = [&](const std::optional<TensorSpec>& tensor) {
    return tensor ? arena.make(*tensor, random) : nullptr;
  };
  const auto plane = [&](const std::optional<TensorSpec>& codes, const QuantizedPlaneSpec& plane) {
    return mnk_quantized_kv_plane{.codec = plane.codec,
                                  .codes = made(codes),
                                  .scales = made(plane.scales),
                                  .means = made(plane.means),
                                  .channel_scales = made(plane.channelScales)};
  };
  const mnk_kv_cache_view& n = spec.write.numbers.into;
  return {.size = spec.viewSize,
          .keys = plane(spec.write.keyCache, spec.keys),
          .values = plane(spec.write.valueCache, spec.values),
          .layout = n.layout,
          .wrap = n.wrap,
          .pinned = n.pinned,
          .latent_dim = n.latent_dim};
}

uint64_t slotIndex(const TensorSpec& codes, mnk_kv_layout layout, uint64_t sequence, uint64_t slot, uint64_t head) {
  const CacheDims dims = cacheDims(codes, layout);
  const uint64_t inSequence = layout == MNK_HEAD_MAJOR ? head * dims.capacity + slot : slot * dims.heads + head;
  return sequence * dims.heads * dims.capacity + inSequence;
}

std::vector<double> valuesOf(Arena& arena, const TensorSpec& tensor) {
  const auto image = arena.image(tensor);
  std::vector<double> values(tensor.elements());
  for (uint64_t e = 0; e < values.size(); ++e) {
    uint64_t bits = 0;
    std::memcpy(&bits, &image[e * tensor.elementBytes()], tensor.elementBytes());
    values[e] = test::valueOf(static_cast<DType>(tensor.dtype), bits);
  }
  return values;
}

void fillVectors(Arena& arena, Seeded& random, const TensorSpec& source) {
  const auto dtype = static_cast<DType>(source.dtype);
  if (!mnk::isFloat(dtype) || source.shape.empty() || source.elements() == 0) return;
  const uint64_t length = source.shape.back();
  std::vector<std::byte> bytes(source.bytes());
  for (uint64_t begin = 0; begin < source.elements(); begin += length) {
    std::vector<float> vector = test::normalVector(random, length);
    const double size = std::ldexp(1.0, static_cast<int>(random.below(16)) - 8);
    const uint64_t kind = random.below(16);
    if (kind == 0) std::fill(vector.begin(), vector.end(), 0.0f);
    if (kind == 1) vector[random.below(length)] = NAN;
    if (kind == 2) vector[random.below(length)] = -INFINITY;
    for (uint64_t e = 0; e < length; ++e) {
      const uint64_t bits = test::nearestBits(dtype, vector[e] * size * (kind == 3 && dtype != DType::f16 ? 1e30 : 1));
      std::memcpy(&bytes[(begin + e) * source.elementBytes()], &bits, source.elementBytes());
    }
  }
  arena.fill(source, bytes);
}

void fillFactors(Arena& arena, Seeded& random, const QuantizedPlaneSpec& plane) {
  for (const auto* tensor : {&plane.means, &plane.channelScales}) {
    if (!*tensor || (*tensor)->dtype != MNK_F32) continue;
    std::vector<float> factors((*tensor)->elements());
    for (float& factor : factors) factor = 0.25f + 0.125f * static_cast<float>(random.below(16));
    arena.fill(**tensor, std::as_bytes(std::span(factors)));
  }
}

}  // namespace mnk::fuzz
