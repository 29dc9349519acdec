#include "FlashDecodeCall.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "Numbers.hpp"
#include "Ops/FlashDecodeRules.hpp"
#include "Ops/QuantizedKVCacheRules.hpp"
#include "Reference/SoftFloat.hpp"

namespace mnk::fuzz {

namespace {

using Words = FlashDecodeWords;

class FlashDecodeCall final : public OpCall {
 public:
  FlashDecodeCall(World& world, Seeded& random, Words words)
      : words_(std::move(words)), device_(world.device(0)), refusal_(refusalOf(words_)) {
    makeDescriptor(world, random);
    fill(world, random);
  }

  std::string text() const override { return words_.text(); }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override { return queryDims(words_).vectors() == 0; }
  bool isForeign() const override {
    Words words = words_;
    if (words.usedOptions().splits == 1) words.scratch.reset();  // which then is not needed
    if (!words.hasOptions) words.mask = words.slopes = words.sinks = std::nullopt;
    if (!words.hasQuantized) words.cache.keys = words.cache.values = {};
    const auto all = tensorsOf(words);
    return std::any_of(all.begin(), all.end(), [](const auto* tensor) { return *tensor && (*tensor)->device != 0; });
  }

  mnk_plan* makePlan(mnk_error_out error) const override {
    return mnk_flash_decode_make_plan(descriptor(), device_, error);
  }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_flash_decode(encoder, descriptor(), error);
  }
  uint64_t apply(World& world) const override {
    if (isEmpty()) return 0;
    applyDecode(words_, world);
    return kUnknown;  // what splits write between dispatches is the op's affair
  }

 private:
  const mnk_flash_decode* descriptor() const { return words_.isNull ? nullptr : &op_.value; }

  void makeDescriptor(World& world, Seeded& random) {
    const auto made = [&](const std::optional<TensorWords>& tensor) {
      return tensor ? world.make(*tensor, random) : nullptr;
    };
    dense_ = words_.view();
    dense_.keys = made(words_.cache.write.keyCache), dense_.values = made(words_.cache.write.valueCache);
    quantized_ = madeView(words_.cache, world, random);
    results_.value = {.size = words_.resultsSize,
                      .into = made(words_.into),
                      .partial_sums = made(words_.sums),
                      .partial_stats = made(words_.stats),
                      .log_sum_exp = made(words_.logSumExp)};
    options_.value = words_.options;
    options_.value.mask = made(words_.mask), options_.value.slopes = made(words_.slopes);
    options_.value.sinks = made(words_.sinks);
    std::memset(op_.tail, words_.tail, sizeof op_.tail);
    op_.value = {.size = words_.size,
                 .queries = made(words_.queries),
                 .dense = words_.hasDense ? &dense_ : nullptr,
                 .quantized = words_.hasQuantized ? &quantized_ : nullptr,
                 .sequences = words_.hasSequences ? words_.sequences.data() : nullptr,
                 .sequence_count = words_.sequenceCount.value_or(words_.sequences.size()),
                 .results = words_.hasResults ? &results_.value : nullptr,
                 .options = words_.hasOptions ? &options_.value : nullptr,
                 .scratch = made(words_.scratch)};
    if (words_.queriesView) {
      queriesView_ = *words_.queriesView;
      queriesView_.tensor = op_.value.queries;
      op_.value.queries_view = &queriesView_;
    }
    // An empty list may have no address, which is not what a missing list is.
    if (words_.hasSequences && words_.sequences.empty()) op_.value.sequences = &nobody_;
  }

  static void fillNumbers(World& world, Seeded& random, const std::optional<TensorWords>& tensor, double size,
                          bool hasHoles = false) {
    if (!tensor || !mnk::isFloat(static_cast<DType>(tensor->dtype))) return;
    std::vector<std::byte> bytes(tensor->bytes());
    for (uint64_t e = 0; e < tensor->elements(); ++e) {
      const double number = size * (static_cast<double>(random.below(2001)) - 1000) / 1000;
      const uint64_t bits =
          test::nearestBits(static_cast<DType>(tensor->dtype), hasHoles && random.below(4) == 0 ? -INFINITY : number);
      std::memcpy(&bytes[e * tensor->elementBytes()], &bits, tensor->elementBytes());
    }
    world.fill(*tensor, bytes);
  }

  void fill(World& world, Seeded& random) const {
    const KVCacheQuantizeWords& cache = words_.cache;
    fillNumbers(world, random, words_.queries, 1);
    for (const auto* tensor : {&cache.write.keyCache, &cache.write.valueCache}) {
      if (*tensor && (*tensor)->dtype == MNK_U8) world.fill(**tensor, random.elements(DType::u8, (*tensor)->bytes()));
      fillNumbers(world, random, *tensor, 1);
    }
    for (const QuantizedPlaneWords* plane : {&cache.keys, &cache.values}) {
      fillNumbers(world, random, plane->scales, 0.5);
      fillFactors(world, random, *plane);
    }
    fillNumbers(world, random, words_.mask, 2, true);
    for (const auto* tensor : {&words_.slopes, &words_.sinks}) fillNumbers(world, random, *tensor, 0.25);
    if (refusal_.empty()) poison(world);
  }

  // Vectors that no row sees are NaN: nobody may be the wiser.
  void poison(World& world) const {
    const KVCacheQuantizeWords& cache = words_.cache;
    const CacheDims dims = cacheDims(*cache.write.keyCache, words_.view().layout);
    std::set<std::pair<uint64_t, uint64_t>> seen;
    for (const mnk_attended_sequence& attended : words_.sequences) {
      for (const HeldSlot& held : heldSlots(words_, attended)) {
        for (uint64_t row = 0; row < queryDims(words_).rows; ++row) {
          if (sees(words_, attended.length, row, held.position)) seen.emplace(attended.sequence, held.slot);
        }
      }
    }
    const bool isCoded = words_.hasQuantized;
    for (const TensorWords* tensor : {isCoded ? &*cache.keys.scales : &*cache.write.keyCache,
                                      isCoded ? &*cache.values.scales : &*cache.write.valueCache}) {
      const uint64_t vectors = dims.sequences * dims.heads * dims.capacity;
      const uint64_t bytes = vectors == 0 ? 0 : tensor->bytes() / vectors;
      const uint64_t bits = test::nearestBits(static_cast<DType>(tensor->dtype), NAN);
      for (uint64_t vector = 0; vector < vectors; ++vector) {
        const uint64_t inSequence = vector % (dims.heads * dims.capacity);
        const uint64_t slot =
            words_.view().layout == MNK_HEAD_MAJOR ? inSequence % dims.capacity : inSequence / dims.heads;
        if (seen.contains({vector / (dims.heads * dims.capacity), slot})) continue;
        TensorWords place = *tensor;
        place.shape = {bytes / tensor->elementBytes()};
        place.offset += vector * bytes;
        std::vector<std::byte> nans(bytes);
        for (uint64_t at = 0; at < bytes; at += tensor->elementBytes()) {
          std::memcpy(&nans[at], &bits, tensor->elementBytes());
        }
        world.fill(place, nans);
      }
    }
  }

  // A struct, with what follows it for callers who claim that theirs is longer.
  template <typename Struct>
  struct Followed {
    Struct value{};
    unsigned char tail[sizeof(Struct)]{};
  };

  Words words_;
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

std::unique_ptr<OpCall> makeCall(World& world, Seeded& random, Wish wish, Bank bank) {
  Words words = validDecode(random, bank);
  if (wish == Wish::anything) words = attacked(std::move(words), random);
  return std::make_unique<FlashDecodeCall>(world, random, std::move(words));
}

std::unique_ptr<Case> makeCase(World& world, Seeded& random) {
  return makeOpCase(world, random, makeCall);
}

std::string textOf(std::string_view name, const std::optional<TensorWords>& tensor) {
  return tensor ? fmt::format("\n  {}: {}", name, tensor->text()) : "";
}

std::string textOf(const std::optional<mnk_heads_view>& view) {
  if (!view) return "";
  if (!view->has_strides) return fmt::format(", layout {}, size {}", static_cast<uint32_t>(view->layout), view->size);
  return fmt::format(", {} x {}, {} of {}, at {}, strides {}, {} and {}, size {}", view->sequences, view->tokens,
                     view->heads, view->head_dim, view->offset, view->sequence_stride, view->token_stride,
                     view->head_stride, view->size);
}

std::string textOf(std::string_view name, const QuantizedPlaneWords& plane) {
  return fmt::format("\n  {} coded by {}, {} bits, factor {}", name, static_cast<uint32_t>(plane.codec.name),
                     plane.codec.bits, plane.codec.scale_factor) +
         textOf("  scales", plane.scales) + textOf("  means", plane.means) +
         textOf("  channel scales", plane.channelScales);
}

}  // namespace

std::string FlashDecodeWords::text() const {
  if (isNull) return "FlashDecode: a NULL descriptor";
  std::string text = fmt::format("FlashDecode (size {}, tail {}, results {}, options {}):", size, tail, resultsSize,
                                 hasOptions ? fmt::format("{}", options.size) : "NULL") +
                     textOf("queries", queries) + textOf(queriesView) + textOf("keys", cache.write.keyCache) +
                     textOf("values", cache.write.valueCache);
  if (hasQuantized) text += textOf("keys", cache.keys) + textOf("values", cache.values);
  text += fmt::format("\n  {}{} layout {}, wrap {}, {} pinned\n  sequences", hasDense ? "dense" : "",
                      hasQuantized ? "quantized" : "", static_cast<uint32_t>(view().layout),
                      static_cast<uint32_t>(view().wrap), view().pinned);
  for (const mnk_attended_sequence& attended : sequences) {
    text += fmt::format(" {} of length {},", attended.sequence, attended.length);
    if (attended.highest != 0) text += fmt::format(" highest {},", attended.highest);
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
  // A handle always has memory, so these cannot be broken through the C door.
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
