#include "KVCacheQuantizeCall.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "Harness/PlanBuffer.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/CacheAddressRules.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;

KVCodec codecOf(const mnk_kv_codec& codec) {
  return {static_cast<KVCodecName>(codec.name), codec.bits, codec.scale_factor == 0 ? 1 : codec.scale_factor};
}

// Bits that stand in a row of the cache, and whether others may stand there as well.
struct Row {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> scales;
  bool isLoose = false;
};

class KVCacheQuantizeCall final : public OpCall {
 public:
  KVCacheQuantizeCall(Arena& arena, Seeded& random, Spec spec) : spec_(std::move(spec)) {
    KVCacheWriteSpec& write = spec_.write;
    const mnk_kv_cache_write& n = write.numbers;
    const auto made = [&](const std::optional<TensorSpec>& tensor) {
      return tensor ? arena.make(*tensor, random) : nullptr;
    };
    const auto rows = [&](RowSpec& rows) {
      rows.list.reserve(1);  // not NULL if empty
      if (rows.tensor) arena.fill(*rows.tensor, std::as_bytes(std::span(rows.list)));
      return mnk_row_indices{rows.hasList ? rows.list.data() : nullptr, rows.listCount.value_or(rows.list.size()),
                             made(rows.tensor)};
    };
    std::memset(storage_.tail, spec_.tail, sizeof storage_.tail);
    storage_.op = {.size = spec_.size,
                   .keys = made(write.keys),
                   .values = made(write.values),
                   .source_layout = n.source_layout,
                   .source_offset = n.source_offset,
                   .has_tokens = n.has_tokens,
                   .tokens = n.tokens,
                   .source_is_ring = n.source_is_ring,
                   .into = madeView(spec_, arena, random),
                   .sequence = n.sequence,
                   .position = n.position,
                   .has_rows = n.has_rows,
                   .sequences = rows(write.sequences),
                   .positions = rows(write.positions),
                   .options = spec_.options,
                   .counts = made(spec_.counts),
                   .probe = made(spec_.probe)};
    for (const bool isKeys : {true, false}) {
      std::optional<mnk_heads_view>& view = isKeys ? write.keysView : write.valuesView;
      if (!view) continue;
      view->tensor = isKeys ? storage_.op.keys : storage_.op.values;
      (isKeys ? storage_.op.keys_view : storage_.op.values_view) = &*view;
    }
    for (const auto* source : {&write.keys, &write.values}) {
      if (*source) fillVectors(arena, random, **source);
    }
    fillFactors(arena, random, spec_.keys);
    fillFactors(arena, random, spec_.values);
    refusal_ = refusalOf(spec_);
  }

  std::string text() const override { return spec_.text(); }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override { return tokensOf(spec_.write) == 0 || dimsOfKeys(spec_.write).heads == 0; }
  bool isForeign() const override {
    const auto used = usedTensors(spec_);
    return std::any_of(used.begin(), used.end(), [](const auto* tensor) { return tensor->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override {
    return mnk_kv_cache_quantize_make_plan(descriptor(), error);
  }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_kv_cache_quantize(encoder, descriptor(), error);
  }

  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    const mnk_kv_cache_write& n = spec_.write.numbers;
    const auto places =
        test::winners(referenceOp(), numbersOf(spec_.write.sequences, arena), numbersOf(spec_.write.positions, arena));
    uint64_t written = 0, notFinite = 0, tooLarge = 0;
    bool isCountOpen = false;
    for (const QuantizedPlaneOperands& plane : planesOf(spec_)) {
      const bool isKeys = plane.plane == &spec_.keys;
      const uint64_t heads = cacheDims(*plane.codes, n.into.layout).heads;
      const std::vector<double> source = valuesOf(arena, *plane.vectors);
      const FactorsOf factors(arena, plane);
      std::map<uint64_t, Row> rows;
      for (const auto& [place, token] : places) {
        for (uint64_t head = 0; head < heads; ++head) {
          const uint64_t first = elementAt(plane.places, token, head);
          const test::VectorCoding coding = codingOf(plane, factors, head);
          const auto coded = test::encoded(coding, std::span(source).subspan(first, plane.headDim));
          rows[slotIndex(*plane.codes, n.into.layout, place.sequence, place.slot, head)] = rowOf(coding, coded);
          notFinite += coded.isNonFinite;
          tooLarge += coded.isSaturated;
          isCountOpen = isCountOpen || isNearTheLargest(coding, coded);
          if (isKeys && spec_.probe) storeProbe(arena, head, coded);
        }
      }
      written += store(arena, plane, rows);
    }
    if (spec_.counts) written += storeCounts(arena, notFinite, tooLarge, isCountOpen);
    if (spec_.probe) written += spec_.probe->bytes();
    const bool isReadByKernel = n.has_rows && (spec_.write.sequences.tensor || spec_.write.positions.tensor);
    return isReadByKernel ? kUnknown : written;
  }

 private:
  struct FactorsOf {
    std::vector<float> means, channelScales;
    FactorsOf(Arena& arena, const QuantizedPlaneOperands& plane) {
      for (const auto& [tensor, into] :
           {std::pair{&plane.plane->means, &means}, {&plane.plane->channelScales, &channelScales}}) {
        if (!*tensor) continue;
        for (const double value : valuesOf(arena, **tensor)) into->push_back(static_cast<float>(value));
      }
    }
  };

  const mnk_kv_cache_quantize* descriptor() const { return spec_.isNull ? nullptr : &storage_.op; }

  static std::vector<uint32_t> numbersOf(const RowSpec& rows, Arena& arena) {
    if (!rows.tensor) return rows.list;
    std::vector<uint32_t> contents(rows.tensor->elements());
    if (!contents.empty()) std::memcpy(contents.data(), arena.image(*rows.tensor).data(), contents.size() * 4);
    return contents;
  }

  test::VectorCoding codingOf(const QuantizedPlaneOperands& plane, const FactorsOf& factors, uint64_t head) const {
    const bool isKeys = plane.plane == &spec_.keys;
    const mnk_kv_scale_rule rule = isKeys ? spec_.options.key_scale : spec_.options.value_scale;
    const bool isUnbiased = rule == MNK_SCALE_DEFAULT ? isKeys : rule == MNK_SCALE_UNBIASED;
    const auto ofHead = [&](const std::vector<float>& all) {
      return all.empty() ? std::span<const float>() : std::span(all).subspan(head * plane.headDim, plane.headDim);
    };
    return {.codec = codecOf(plane.plane->codec),
            .candidates = spec_.options.candidates == 0 ? 5 : spec_.options.candidates,
            .rule = isUnbiased ? KVScaleRule::unbiased : KVScaleRule::leastSquares,
            .nonFinite = static_cast<KVNonFinite>(spec_.options.non_finite),
            .means = ofHead(factors.means),
            .channelScales = ofHead(factors.channelScales)};
  }

  // Codes are open where the codec looks for the best, and where an element lies so near a boundary that rounding
  // decides. What is stored then is checked by the op's own tests.
  static Row rowOf(const test::VectorCoding& coding, const test::CodedVector& coded) {
    Row row{.bytes = test::packed(coding.codec, coded.codes), .scales = coded.scales};
    if (coded.isNonFinite || coded.isZero()) return row;
    row.isLoose = coding.codec.name == KVCodecName::turbo && coding.candidates > 1;
    const auto& boundaries = test::tableOf(coding.codec).boundaries;
    for (const double element : coded.compared) {
      const auto above = std::lower_bound(boundaries.begin(), boundaries.end(), element);
      row.isLoose = row.isLoose || (above != boundaries.end() && *above - element < 2e-5 * (1 + std::abs(element))) ||
                    (above != boundaries.begin() && element - above[-1] < 2e-5 * (1 + std::abs(element)));
    }
    return row;
  }

  static bool isNearTheLargest(const test::VectorCoding& coding, const test::CodedVector& coded) {
    const double scale = coded.scales.empty() ? 0 : test::valueOf(coding.codec.scaleType(), coded.scales[0]);
    return !coded.isSaturated && coding.codec.name == KVCodecName::turbo && scale > 6e4;
  }

  void storeProbe(Arena& arena, uint64_t head, const test::CodedVector& coded) const {
    const auto image = arena.image(*spec_.probe);
    for (uint64_t e = 0; e < coded.compared.size(); ++e) {
      const auto value = static_cast<float>(coded.compared[e]);
      std::memcpy(&image[(head * coded.compared.size() + e) * 4], &value, 4);
    }
    // The factor multiplies the error of a small element as it does the largest.
    const double scale = std::max(1.0f, spec_.keys.codec.scale_factor);
    arena.allow(*spec_.probe, [=](uint64_t, uint64_t expected, uint64_t got) {
      const double right = test::valueOf(DType::f32, expected);
      return std::abs(test::valueOf(DType::f32, got) - right) <= 2e-5 * (scale + std::abs(right));
    });
  }

  uint64_t storeCounts(Arena& arena, uint64_t notFinite, uint64_t tooLarge, bool isOpen) const {
    uint32_t numbers[2];
    const auto image = arena.image(*spec_.counts);
    std::memcpy(numbers, image.data(), sizeof numbers);
    numbers[0] += static_cast<uint32_t>(notFinite);
    numbers[1] += static_cast<uint32_t>(tooLarge);
    std::memcpy(image.data(), numbers, sizeof numbers);
    if (isOpen) arena.allow(*spec_.counts, [](uint64_t element, uint64_t, uint64_t) { return element == 1; });
    return sizeof numbers;
  }

  // Puts rows into the images and returns how many bytes they take.
  static uint64_t store(Arena& arena, const QuantizedPlaneOperands& plane, const std::map<uint64_t, Row>& rows) {
    const TensorSpec &codes = *plane.codes, &scales = *plane.plane->scales;
    const uint64_t codeBytes = codes.shape.back(), size = scales.elementBytes();
    const auto dtype = static_cast<DType>(scales.dtype);
    uint64_t written = 0;
    for (const auto& [index, row] : rows) {
      std::memcpy(&arena.image(codes)[index * codeBytes], row.bytes.data(), codeBytes);
      for (uint64_t s = 0; s < row.scales.size(); ++s) {
        std::memcpy(&arena.image(scales)[(index * row.scales.size() + s) * size], &row.scales[s], size);
      }
      written += codeBytes + row.scales.size() * size;
    }
    // What a later call has overwritten has another image.
    arena.allow(codes, [=](uint64_t element, uint64_t expected, uint64_t) {
      const auto row = rows.find(element / codeBytes);
      return row != rows.end() && row->second.isLoose &&
             expected == static_cast<uint64_t>(row->second.bytes[element % codeBytes]);
    });
    const uint64_t each = rows.empty() ? 1 : rows.begin()->second.scales.size();
    arena.allow(scales, [=](uint64_t element, uint64_t expected, uint64_t got) {
      const auto row = rows.find(element / each);
      if (row == rows.end() || row->second.scales[element % each] != expected) return false;
      if (test::isNaN(dtype, expected)) return test::isNaN(dtype, got);
      const double right = test::valueOf(dtype, expected), value = test::valueOf(dtype, got);
      // Of 17 sizes the largest is 1.7 times the smallest.
      const double open = row->second.isLoose && dtype == DType::f16 ? 0.7 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-20);
      return std::abs(value - right) <= open * std::abs(right) + (dtype == DType::f16 ? 0x1p-24 : 0);
    });
    return written;
  }

  KVCacheWrite referenceOp() const {
    const mnk_kv_cache_write& n = spec_.write.numbers;
    const auto tensor = [](const TensorSpec& spec) {
      return test::planTensor(static_cast<DType>(spec.dtype), *Shape::make(spec.shape));
    };
    KVCacheWrite op{.keys = referenceSource(*spec_.write.keys, spec_.write.keysView, n.source_layout),
                    .sourceOffset = n.source_offset,
                    .sourceIsRing = n.source_is_ring,
                    .into = {.keys = tensor(*spec_.write.keyCache),
                             .layout = static_cast<KVLayout>(n.into.layout),
                             .wrap = static_cast<KVWrap>(n.into.wrap),
                             .pinned = n.into.pinned},
                    .sequence = n.sequence,
                    .position = n.position};
    if (n.has_tokens) op.tokens = n.tokens;
    if (n.has_rows) op.rows.emplace();
    return op;
  }

  Spec spec_;
  std::string refusal_;
  struct {
    mnk_kv_cache_quantize op;
    unsigned char tail[sizeof(mnk_kv_cache_quantize)];
  } storage_;
};

std::unique_ptr<OpCall> makeCall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = validQuantize(random, bank);
  if (wish == Wish::anything) spec = mutated(std::move(spec), random);
  return std::make_unique<KVCacheQuantizeCall>(arena, random, std::move(spec));
}

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeCall);
}

}  // namespace

Target kvCacheQuantizeTarget() {
  // A handle always has memory, so these two cannot be broken through the C API.
  const std::set<std::string_view> unreachable{"a source has no memory", "the cache has no memory"};
  std::vector<std::string_view> refusals = encoderRefusals();
  const auto add = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (!unreachable.contains(rule.what)) refusals.push_back(rule.what);
    }
  };
  add(cacheSourceRules()), add(quantizedKVCacheRules()), add(cacheLayoutRules()), add(kvCacheQuantizeRules()),
      add(cacheAddressRules());
  refusals.insert(
      refusals.end(),
      {"operands share memory", "mnk_kv_cache_quantize is missing", "mnk_kv_cache_quantize has the wrong size",
       "mnk_quantized_kv_view has the wrong size", "keys is missing", "into.keys.codes is missing",
       "into.keys.scales is missing", "into.values.codes is missing", "into.values.scales is missing",
       "the number is not a layout", "the number is not a wrap", "the number is not a codec",
       "the number is not a rule for scales", "the number is not a treatment of NaN and infinity",
       "the list of rows is missing", "there are too many rows", "keys_view->tensor is missing",
       "values_view->tensor is missing", "mnk_heads_view has the wrong size"});
  return {.name = "KVCacheQuantize", .share = 190, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
