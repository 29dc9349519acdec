#include "FlashDecodeCall.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "Harness/SoftFloat.hpp"
#include "Numbers.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"

namespace mnk::fuzz {

namespace {

using Spec = FlashDecodeSpec;

class FlashDecodeCall final : public OpCall {
 public:
  FlashDecodeCall(Arena& arena, Seeded& random, Spec spec)
      : spec_(std::move(spec)), device_(arena.device(0)), refusal_(refusalOf(spec_)) {
    makeDescriptor(arena, random);
    fill(arena, random);
  }

  std::string text() const override { return spec_.text(); }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override { return queryDims(spec_).vectors() == 0; }
  bool isForeign() const override {
    Spec spec = spec_;
    if (spec.usedOptions().splits == 1) spec.scratch.reset();  // which then is not needed
    if (!spec.hasOptions) spec.mask = spec.slopes = spec.sinks = std::nullopt;
    if (!spec.hasQuantized) spec.cache.keys = spec.cache.values = {};
    const auto all = tensorsOf(spec);
    return std::any_of(all.begin(), all.end(), [](const auto* tensor) { return *tensor && (*tensor)->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override {
    return mnk_flash_decode_make_plan(descriptor(), device_, error);
  }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_flash_decode(encoder, descriptor(), error);
  }
  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    applyDecode(spec_, arena);
    return kUnknown;  // what splits write between dispatches is the op's affair
  }

 private:
  const mnk_flash_decode* descriptor() const { return spec_.isNull ? nullptr : &op_.value; }

  void makeDescriptor(Arena& arena, Seeded& random) {
    const auto made = [&](const std::optional<TensorSpec>& tensor) {
      return tensor ? arena.make(*tensor, random) : nullptr;
    };
    dense_ = spec_.view();
    dense_.keys = made(spec_.cache.write.keyCache), dense_.values = made(spec_.cache.write.valueCache);
    quantized_ = madeView(spec_.cache, arena, random);
    results_.value = {.size = spec_.resultsSize,
                      .into = made(spec_.into),
                      .partial_sums = made(spec_.sums),
                      .partial_stats = made(spec_.stats),
                      .log_sum_exp = made(spec_.logSumExp)};
    options_.value = spec_.options;
    options_.value.mask = made(spec_.mask), options_.value.slopes = made(spec_.slopes);
    options_.value.sinks = made(spec_.sinks);
    std::memset(op_.tail, spec_.tail, sizeof op_.tail);
    op_.value = {.size = spec_.size,
                 .queries = made(spec_.queries),
                 .dense = spec_.hasDense ? &dense_ : nullptr,
                 .quantized = spec_.hasQuantized ? &quantized_ : nullptr,
                 .sequences = spec_.hasSequences ? spec_.sequences.data() : nullptr,
                 .sequence_count = spec_.sequenceCount.value_or(spec_.sequences.size()),
                 .results = spec_.hasResults ? &results_.value : nullptr,
                 .options = spec_.hasOptions ? &options_.value : nullptr,
                 .scratch = made(spec_.scratch)};
    if (spec_.queriesView) {
      queriesView_ = *spec_.queriesView;
      queriesView_.tensor = op_.value.queries;
      op_.value.queries_view = &queriesView_;
    }
    // An empty list may have no address, which is not what a missing list is.
    if (spec_.hasSequences && spec_.sequences.empty()) op_.value.sequences = &nobody_;
  }

  static void fillNumbers(Arena& arena, Seeded& random, const std::optional<TensorSpec>& tensor, double size,
                          bool hasHoles = false) {
    if (!tensor || !mnk::isFloat(static_cast<DType>(tensor->dtype))) return;
    std::vector<std::byte> bytes(tensor->bytes());
    for (uint64_t e = 0; e < tensor->elements(); ++e) {
      const double number = size * (static_cast<double>(random.below(2001)) - 1000) / 1000;
      const uint64_t bits =
          test::nearestBits(static_cast<DType>(tensor->dtype), hasHoles && random.below(4) == 0 ? -INFINITY : number);
      std::memcpy(&bytes[e * tensor->elementBytes()], &bits, tensor->elementBytes());
    }
    arena.fill(*tensor, bytes);
  }

  void fill(Arena& arena, Seeded& random) const {
    const KVCacheQuantizeSpec& cache = spec_.cache;
    fillNumbers(arena, random, spec_.queries, 1);
    for (const auto* tensor : {&cache.write.keyCache, &cache.write.valueCache}) {
      if (*tensor && (*tensor)->dtype == MNK_U8) arena.fill(**tensor, random.elements(DType::u8, (*tensor)->bytes()));
      fillNumbers(arena, random, *tensor, 1);
    }
    for (const QuantizedPlaneSpec* plane : {&cache.keys, &cache.values}) {
      fillNumbers(arena, random, plane->scales, 0.5);
      fillFactors(arena, random, *plane);
    }
    fillNumbers(arena, random, spec_.mask, 2, true);
    for (const auto* tensor : {&spec_.slopes, &spec_.sinks}) fillNumbers(arena, random, *tensor, 0.25);
    if (refusal_.empty()) poison(arena);
  }

  // Vectors that no row sees are NaN: nobody may be the wiser.
  void poison(Arena& arena) const {
    const KVCacheQuantizeSpec& cache = spec_.cache;
    const CacheDims dims = cacheDims(*cache.write.keyCache, spec_.view().layout);
    std::set<std::pair<uint64_t, uint64_t>> seen;
    const FlashDecode op = referenceOp(spec_);
    for (const AttendedSequence& attended : op.sequences) {
      const uint64_t rows = attended.rows == 0 ? queryDims(spec_).rows : attended.rows;
      for (const test::HeldKey& held : test::heldKeys(test::geometryOf(op), attended)) {
        for (uint64_t row = 0; row < rows; ++row) {
          const int64_t position = test::rowPosition(attended.length, rows, row);
          if (test::isVisible(op, held.position, position)) seen.emplace(attended.sequence, held.slot);
        }
      }
    }
    const bool isCoded = spec_.hasQuantized;
    for (const TensorSpec* tensor : {isCoded ? &*cache.keys.scales : &*cache.write.keyCache,
                                     isCoded ? &*cache.values.scales : &*cache.write.valueCache}) {
      const uint64_t vectors = dims.sequences * dims.heads * dims.capacity;
      const uint64_t bytes = vectors == 0 ? 0 : tensor->bytes() / vectors;
      const uint64_t bits = test::nearestBits(static_cast<DType>(tensor->dtype), NAN);
      for (uint64_t vector = 0; vector < vectors; ++vector) {
        const uint64_t inSequence = vector % (dims.heads * dims.capacity);
        const uint64_t slot =
            spec_.view().layout == MNK_HEAD_MAJOR ? inSequence % dims.capacity : inSequence / dims.heads;
        if (seen.contains({vector / (dims.heads * dims.capacity), slot})) continue;
        TensorSpec place = *tensor;
        place.shape = {bytes / tensor->elementBytes()};
        place.offset += vector * bytes;
        std::vector<std::byte> nans(bytes);
        for (uint64_t at = 0; at < bytes; at += tensor->elementBytes()) {
          std::memcpy(&nans[at], &bits, tensor->elementBytes());
        }
        arena.fill(place, nans);
      }
    }
  }

  // A struct, with what follows it for callers who claim that theirs is longer.
  template <typename Struct>
  struct Followed {
    Struct value{};
    unsigned char tail[sizeof(Struct)]{};
  };

  Spec spec_;
  mnk_device* device_;
  std::string refusal_;
  mnk_attended_sequence nobody_{};
  mnk_heads_view queriesView_{};
  mnk_kv_cache_view dense_{};
  mnk_quantized_kv_view quantized_{};
  Followed<mnk_attention_results> results_;
  Followed<mnk_attention_options> options_;
  Followed<mnk_flash_decode> op_;
};

std::unique_ptr<OpCall> makeCall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = validDecode(random, bank);
  if (wish == Wish::anything) spec = mutated(std::move(spec), random);
  return std::make_unique<FlashDecodeCall>(arena, random, std::move(spec));
}

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeCall);
}

std::string textOf(std::string_view name, const std::optional<TensorSpec>& tensor) {
  return tensor ? fmt::format("\n  {}: {}", name, tensor->text()) : "";
}

std::string textOf(const std::optional<mnk_heads_view>& view) {
  if (!view) return "";
  if (!view->has_strides) return fmt::format(", layout {}, size {}", static_cast<uint32_t>(view->layout), view->size);
  return fmt::format(", {} x {}, {} of {}, at {}, strides {}, {} and {}, size {}", view->sequences, view->tokens,
                     view->heads, view->head_dim, view->offset, view->sequence_stride, view->token_stride,
                     view->head_stride, view->size);
}

std::string textOf(std::string_view name, const QuantizedPlaneSpec& plane) {
  return fmt::format("\n  {} coded by {}, {} bits, factor {}", name, static_cast<uint32_t>(plane.codec.name),
                     plane.codec.bits, plane.codec.scale_factor) +
         textOf("  scales", plane.scales) + textOf("  means", plane.means) +
         textOf("  channel scales", plane.channelScales);
}

}  // namespace

std::string FlashDecodeSpec::text() const {
  if (isNull) return "FlashDecode: a NULL descriptor";
  std::string text = fmt::format("FlashDecode (size {}, tail {}, results {}, options {}):", size, tail, resultsSize,
                                 hasOptions ? fmt::format("{}", options.size) : "NULL") +
                     textOf("queries", queries) + textOf(queriesView) + textOf("keys", cache.write.keyCache) +
                     textOf("values", cache.write.valueCache);
  if (hasQuantized) text += textOf("keys", cache.keys) + textOf("values", cache.values);
  text += fmt::format("\n  {}{} layout {}, wrap {}, {} pinned, {} latent\n  sequences", hasDense ? "dense" : "",
                      hasQuantized ? "quantized" : "", static_cast<uint32_t>(view().layout),
                      static_cast<uint32_t>(view().wrap), view().pinned, view().latent_dim);
  for (const mnk_attended_sequence& attended : sequences) {
    text += fmt::format(" {} of length {},", attended.sequence, attended.length);
    if (attended.highest != 0) text += fmt::format(" highest {},", attended.highest);
    if (attended.rows != 0) text += fmt::format(" {} rows,", attended.rows);
  }
  if (sequenceCount) text += fmt::format(" said to be {}", *sequenceCount);
  text += textOf("into", into) + textOf("sums", sums) + textOf("stats", stats) + textOf("logSumExp", logSumExp);
  text += fmt::format("\n  scale {}, {}, window {}{}, softcap {}, {} splits, kernel {}, merge {}", options.scale,
                      options.is_bidirectional ? "bidirectional" : "causal", options.window,
                      options.window_sees_pinned ? " and pinned ones" : "", options.softcap, options.splits,
                      static_cast<uint32_t>(options.kernel), static_cast<uint32_t>(options.merge));
  return text + textOf("mask", mask) + textOf("slopes", slopes) + textOf("sinks", sinks) + textOf("scratch", scratch);
}

Target flashDecodeTarget() {
  // A handle always has memory, so these cannot be broken through the C API.
  const std::set<std::string_view> unreachable{"queries have no memory", "the cache has no memory",
                                               "a result has no memory"};
  std::vector<std::string_view> refusals = encoderRefusals();
  const auto add = [&](const auto& rules) {
    for (const auto& rule : rules) {
      if (!unreachable.contains(rule.what)) refusals.push_back(rule.what);
    }
  };
  add(attendedCacheRules()), add(quantizedKVCacheRules()), add(flashDecodeRules());
  refusals.insert(refusals.end(), {"there is too little scratch memory",
                                   "mnk_flash_decode is missing",
                                   "mnk_flash_decode has the wrong size",
                                   "queries is missing",
                                   "queries_view.tensor is missing",
                                   "mnk_heads_view has the wrong size",
                                   "attention needs one cache",
                                   "mnk_kv_cache_view has the wrong size",
                                   "mnk_quantized_kv_view has the wrong size",
                                   "dense.keys is missing",
                                   "quantized.keys.codes is missing",
                                   "quantized.keys.scales is missing",
                                   "quantized.values.codes is missing",
                                   "quantized.values.scales is missing",
                                   "the number is not a layout",
                                   "the number is not a wrap",
                                   "the number is not a codec",
                                   "sequences is missing",
                                   "there are too many sequences",
                                   "mnk_attention_results is missing",
                                   "mnk_attention_results has the wrong size",
                                   "partial_sums is missing",
                                   "partial_stats is missing",
                                   "mnk_attention_options has the wrong size",
                                   "the number is not a kernel of FlashDecode",
                                   "the number is not a way of merging"});
  return {.name = "FlashDecode", .share = 760, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
