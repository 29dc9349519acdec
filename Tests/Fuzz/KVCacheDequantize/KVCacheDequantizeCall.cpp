#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "Harness/SoftFloat.hpp"
#include "KVCacheQuantize/KVCacheQuantizeCall.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;

class KVCacheDequantizeCall final : public OpCall {
 public:
  KVCacheDequantizeCall(Arena& arena, Seeded& random, Spec spec) : spec_(std::move(spec)) {
    const KVCacheWriteSpec& write = spec_.write;
    const auto made = [&](const std::optional<TensorSpec>& tensor) {
      return tensor ? arena.make(*tensor, random) : nullptr;
    };
    std::memset(storage_.tail, spec_.tail, sizeof storage_.tail);
    storage_.op = {.size = spec_.size,
                   .from = madeView(spec_, arena, random),
                   .sequence = write.numbers.sequence,
                   .position = write.numbers.position,
                   .keys = made(write.keys),
                   .values = made(write.values),
                   .layout = write.numbers.source_layout,
                   .domain = spec_.domain};
    for (const auto* codes : {&write.keyCache, &write.valueCache}) {
      if (*codes) arena.fill(**codes, random.elements(DType::u8, (*codes)->bytes()));
    }
    for (const QuantizedPlaneSpec* plane : {&spec_.keys, &spec_.values}) {
      if (plane->scales) fillScales(arena, random, *plane->scales);
      fillFactors(arena, random, *plane);
    }
    refusal_ = refusalOf(spec_);
  }

  std::string text() const override { return spec_.text(); }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override {
    const SourceDims dims = sourceDims(*planesOf(spec_)[0].vectors, spec_.write.numbers.source_layout);
    return dims.tokens == 0 || dims.heads == 0;
  }
  bool isForeign() const override {
    const auto used = usedTensors(spec_);
    return std::any_of(used.begin(), used.end(), [](const auto* tensor) { return tensor->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override {
    return mnk_kv_cache_dequantize_make_plan(descriptor(), error);
  }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_kv_cache_dequantize(encoder, descriptor(), error);
  }

  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    uint64_t written = 0;
    for (const QuantizedPlaneOperands& plane : planesOf(spec_)) written += store(arena, plane);
    return written;
  }

 private:
  const mnk_kv_cache_dequantize* descriptor() const { return spec_.isNull ? nullptr : &storage_.op; }

  static void fillScales(Arena& arena, Seeded& random, const TensorSpec& scales) {
    const auto dtype = static_cast<DType>(scales.dtype);
    if (!mnk::isFloat(dtype)) return;
    std::vector<std::byte> bytes(scales.bytes());
    for (uint64_t e = 0; e < scales.elements(); ++e) {
      const double scale =
          random.below(8) == 0 ? 0 : std::ldexp(1.0 + random.below(64) / 64.0, int(random.below(12)) - 6);
      const uint64_t bits = test::nearestBits(dtype, scale);
      std::memcpy(&bytes[e * scales.elementBytes()], &bits, scales.elementBytes());
    }
    arena.fill(scales, bytes);
  }

  // Positions have slots of their own, so that each is the slot of a write.
  uint64_t slotOf(uint64_t position, uint64_t capacity) const {
    const mnk_kv_cache_view& n = spec_.write.numbers.into;
    if (n.wrap == MNK_LINEAR || position < n.pinned) return position;
    return n.pinned + (position - n.pinned) % (capacity - n.pinned);
  }

  struct Decoded {
    std::vector<double> values;
    std::vector<double> slack;  // how far each may be from the reference before it is rounded
  };

  Decoded decoded(Arena& arena, const QuantizedPlaneOperands& plane, uint64_t slot, uint64_t head) const {
    const mnk_kv_codec& given = plane.plane->codec;
    const KVCodec codec{static_cast<KVCodecName>(given.name), given.bits,
                        given.scale_factor == 0 ? 1 : given.scale_factor};
    const uint64_t codeBytes = plane.codes->shape.back();
    const TensorSpec& scales = *plane.plane->scales;
    const uint64_t each = codec.name == KVCodecName::mlx1 && plane.headDim == 512 ? 2 : 1;
    std::vector<uint64_t> scaleBits(each);
    for (uint64_t s = 0; s < each; ++s) {
      std::memcpy(&scaleBits[s], &arena.image(scales)[(slot * each + s) * scales.elementBytes()],
                  scales.elementBytes());
    }
    auto codes = test::unpacked(codec, plane.headDim, arena.image(*plane.codes).subspan(slot * codeBytes, codeBytes));
    // Bits of a byte beyond those of its code mean nothing.
    for (uint32_t& code : codes) code &= (1u << codec.bits) - 1;
    const std::vector<double> rotated = test::decodedRotated(codec, codes, scaleBits);
    double length = 0;
    for (const double element : rotated) length += element * element;
    length = std::sqrt(length);
    if (spec_.domain == MNK_ROTATED_DOMAIN) {
      Decoded result{rotated, {}};
      for (const double element : rotated) result.slack.push_back(std::abs(element) * 1e-6);
      return result;
    }
    std::vector<float> means, channels;
    for (const auto& [tensor, into] :
         {std::pair{&plane.plane->means, &means}, {&plane.plane->channelScales, &channels}}) {
      if (!*tensor) continue;
      const std::vector<double> all = valuesOf(arena, **tensor);
      for (uint64_t e = 0; e < plane.headDim; ++e) into->push_back(static_cast<float>(all[head * plane.headDim + e]));
    }
    Decoded result{test::decoded({.codec = codec, .means = means, .channelScales = channels}, codes, scaleBits), {}};
    for (uint64_t e = 0; e < plane.headDim; ++e) {
      const double channel = channels.empty() ? 1 : std::abs(channels[e]);
      result.slack.push_back(length * 4e-6 / channel + (means.empty() ? 0 : std::abs(means[e]) * 1e-6));
    }
    return result;
  }

  uint64_t store(Arena& arena, const QuantizedPlaneOperands& plane) const {
    const mnk_kv_cache_write& n = spec_.write.numbers;
    const TensorSpec& into = *plane.vectors;
    const auto dtype = static_cast<DType>(into.dtype);
    const SourceDims dims = sourceDims(into, n.source_layout);
    const uint64_t capacity = cacheDims(*plane.codes, n.into.layout).capacity;
    std::vector<double> values(into.elements()), slack(into.elements());
    for (uint64_t token = 0; token < dims.tokens; ++token) {
      for (uint64_t head = 0; head < dims.heads; ++head) {
        const uint64_t slot =
            slotIndex(*plane.codes, n.into.layout, n.sequence, slotOf(n.position + token, capacity), head);
        const Decoded vector = decoded(arena, plane, slot, head);
        const uint64_t begin = elementAt(plane.places, token, head);
        std::copy(vector.values.begin(), vector.values.end(), values.begin() + static_cast<ptrdiff_t>(begin));
        std::copy(vector.slack.begin(), vector.slack.end(), slack.begin() + static_cast<ptrdiff_t>(begin));
      }
    }
    std::vector<uint64_t> bits(values.size());
    const auto image = arena.image(into);
    for (uint64_t e = 0; e < values.size(); ++e) {
      bits[e] = test::nearestBits(dtype, values[e]);
      std::memcpy(&image[e * into.elementBytes()], &bits[e], into.elementBytes());
    }
    arena.allow(into, [=](uint64_t element, uint64_t expected, uint64_t got) {
      if (bits[element] != expected) return false;  // a later call has overwritten it
      const double value = values[element];
      // The cache of an earlier call may have other scales than its own.
      if (!(std::abs(value) < 6e4) || !(slack[element] < 1e30)) return true;
      const double digit = dtype == DType::f32 ? 0x1p-20 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
      const double least = dtype == DType::f16 ? 0x1p-24 : 0x1p-126;
      return std::abs(test::valueOf(dtype, got) - value) <= slack[element] + digit * std::abs(value) + least;
    });
    return into.bytes();
  }

  Spec spec_;
  std::string refusal_;
  struct {
    mnk_kv_cache_dequantize op;
    unsigned char tail[sizeof(mnk_kv_cache_dequantize)];
  } storage_;
};

std::unique_ptr<OpCall> makeCall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = validDequantize(random, bank);
  if (wish == Wish::anything) spec = mutated(std::move(spec), random);
  return std::make_unique<KVCacheDequantizeCall>(arena, random, std::move(spec));
}

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeCall);
}

}  // namespace

Target kvCacheDequantizeTarget() {
  // A handle always has memory, so these two cannot be broken through the C API.
  const std::set<std::string_view> unreachable{"a target has no memory", "the cache has no memory"};
  std::vector<std::string_view> refusals = encoderRefusals();
  const auto add = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (!unreachable.contains(rule.what)) refusals.push_back(rule.what);
    }
  };
  add(quantizedKVCacheRules()), add(kvCacheDequantizeRules());
  refusals.insert(refusals.end(),
                  {"an extent is too large for the kernel", "mnk_kv_cache_dequantize is missing",
                   "mnk_kv_cache_dequantize has the wrong size", "mnk_quantized_kv_view has the wrong size",
                   "from.keys.codes is missing", "from.keys.scales is missing", "from.values.codes is missing",
                   "from.values.scales is missing", "the number is not a layout", "the number is not a wrap",
                   "the number is not a codec", "the number is not a domain"});
  return {.name = "KVCacheDequantize", .share = 120, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
