#include <algorithm>
#include <cmath>
#include <optional>

#include "CacheCall.hpp"
#include "CacheNumbers.hpp"
#include "OpMutator.hpp"
#include "Target.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;

constexpr std::string_view kNoDescriptor = "descriptor is missing";
constexpr std::string_view kNotADType = "the number is not a case of mnk_dtype";
constexpr std::string_view kNotAWrap = "the number is not a case of mnk_kv_wrap";
constexpr std::string_view kNotACodec = "the number is not a case of mnk_kv_codec_name";
constexpr std::string_view kNotARule = "the number is not a case of mnk_kv_scale_rule";
constexpr std::string_view kNotATreatment = "the number is not a case of mnk_kv_non_finite";
constexpr std::string_view kNotPlanes = "the number is not a case of mnk_kv_quantized_planes";
constexpr std::string_view kNoFlag = "descriptor.quantized would be ignored";
constexpr std::string_view kNoWindowFlag = "descriptor.sliding_window would be ignored";
constexpr std::string_view kChannelShape = "means or channel scales do not match the cache";
constexpr std::string_view kTooLarge = "the shape holds more elements than 64-bit sizes can count";
constexpr std::string_view kNoMemory = "no memory for a buffer";
constexpr std::string_view kSequence = "the sequence is not in the cache";
constexpr std::string_view kUnnamed = "the call does not say which sequence of the cache it is for";
constexpr std::string_view kCut = "the sequence cannot be cut there";

// Whether a struct has a field that is not 0.
template <typename Struct>
bool isFilled(Struct of) {
  bool isAny = false;
  forEachField(of, [&](const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (!HasFields<Field>) isAny = isAny || field != Field{};
  });
  return isAny;
}

class AttentionCacheCase final : public Case {
 public:
  AttentionCacheCase(Arena& arena, Seeded& random) {
    mnk_attention_cache_descriptor& d = descriptor_;
    d = {.kv_heads = static_cast<uint32_t>(1 + random.below(3)),
         .head_dim = static_cast<uint32_t>(8 * (1 + random.below(8))),
         .value_head_dim = static_cast<uint32_t>(8 * random.below(8)),
         .capacity = static_cast<uint32_t>(1 + random.below(9)),
         .sequences = static_cast<uint32_t>(1 + random.below(3)),
         .dtype = oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}),
         .when_full = coin(random, 2, 3) ? MNK_KV_WRAP_RING : MNK_KV_WRAP_LINEAR,
         .pinned = 0};
    if (d.when_full == MNK_KV_WRAP_RING) d.pinned = static_cast<uint32_t>(random.below(d.capacity));
    position_ = coin(random, 3, 4) ? 0 : edge(random, {d.capacity});
    sequence_ = static_cast<uint32_t>(coin(random, 3, 4) ? random.below(d.sequences) : edge(random, {d.sequences}));
    if (coin(random, 1, 4)) slide(random);
    if (coin(random, 1, 2)) quantize(random);
    if (coin(random, 1, 6)) {
      d.head_dim = 64, d.latent_dim = 512;
      d.value_head_dim = coin(random, 1, 2) ? 0 : 512;
    }
    if (coin(random, 1, 4)) {
      d.is_storage_only = true;
      if (!d.has_quantized) d.head_dim = static_cast<uint32_t>(1 + random.below(20));
    }
    if (coin(random, 1, 2)) mutate(random);
    if (d.has_quantized) makeChannels(arena, random);
    // A cache keeps a few words for every sequence: as many as there may be would fill the machine.
    if (refusal().empty()) d.sequences = std::min(d.sequences, 1u << 16);
    text_ = fmt::format("AttentionCache{} {}; cut sequence {} at {}", isNull_ ? " NULL" : "", OpText::of(d, arena),
                        sequence_, position_);
    for (const std::optional<float>& fill : fills_) text_ += fill ? fmt::format(", {}", *fill) : ", none";
  }

  std::string text() const override { return text_; }

  Verdict run(Arena& arena) override {
    const mnk_attention_cache_descriptor& d = descriptor_;
    test::Caught caught;
    const Owned<mnk_cache> cache(mnk_cache_make(arena.device(0), isNull_ ? nullptr : &d, caught.out()),
                                 mnk_cache_release);
    const std::string_view expected = refusal();
    // Whether there is memory for a cache that is merely large is not the descriptor's to say.
    if (!cache && expected.empty() && numbers().bytes() > kSmall &&
        mnk_error_get_code(caught.get()) == MNK_OUT_OF_MEMORY) {
      return checkResult(caught, false, kNoMemory);
    }
    Verdict verdict = checkResult(caught, bool(cache), expected);
    if (!cache || !verdict.failure.empty()) return verdict;
    if (mnk_cache_byte_count(cache.get()) != numbers().bytes()) {
      verdict.failure = fmt::format("the cache has {} bytes, expected {}", mnk_cache_byte_count(cache.get()),
                                    static_cast<uint64_t>(numbers().bytes()));
      return verdict;
    }
    const bool isCut = mnk_cache_truncate(cache.get(), position_, sequence_, caught.out());
    const bool isUnnamed = sequence_ == MNK_ONLY_SEQUENCE;
    const bool isKnown = isUnnamed ? d.sequences == 1 : sequence_ < d.sequences;
    const std::string_view unknown = isUnnamed ? kUnnamed : kSequence;
    verdict = checkResult(caught, isCut, !isKnown ? unknown : (position_ == 0 ? "" : kCut));
    for (uint32_t sequence = 0; sequence < std::min(d.sequences, 4u); ++sequence) {
      mnk_sequence_state state{};
      const bool isThere = mnk_cache_get_sequence(cache.get(), sequence, &state, nullptr);
      if (isThere && state.next_position == 0 && state.count == 0) continue;
      verdict.failure = "an empty sequence has positions";
    }
    return verdict;
  }

 private:
  static constexpr unsigned __int128 kSmall = 1 << 20;

  // A window, and a ring that is as large as it needs, or is left to size itself.
  void slide(Seeded& random) {
    mnk_attention_cache_descriptor& d = descriptor_;
    d.has_sliding_window = true;
    d.sliding_window = {.window = static_cast<uint32_t>(1 + random.below(6)),
                        .max_rows = static_cast<uint32_t>(random.below(5)),
                        .max_draft = static_cast<uint32_t>(random.below(5))};
    d.capacity = coin(random, 1, 2) ? 0 : static_cast<uint32_t>(d.pinned + 9 + random.below(4));
  }

  // A codec that fits the head dims, which are made to fit one.
  void quantize(Seeded& random) {
    mnk_attention_cache_descriptor& d = descriptor_;
    const bool isTurbo = coin(random, 2, 3);
    d.head_dim = isTurbo ? oneOf(random, {32u, 64u, 80u, 192u, 256u}) : oneOf(random, {4u, 32u, 256u, 512u});
    if (d.value_head_dim != 0) d.value_head_dim = d.head_dim;
    const bool hasByteCodes = !isTurbo && d.head_dim >= 256 && coin(random, 1, 2);
    const bool isVariant = !isTurbo && d.head_dim >= 256 && coin(random, 1, 2);
    const bool isAffine = isVariant && !hasByteCodes;
    d.has_quantized = true;
    d.quantized = {
        .codec = isTurbo      ? MNK_KV_CODEC_NAME_TURBO
                 : !isVariant ? MNK_KV_CODEC_NAME_MLX1
                 : isAffine   ? MNK_KV_CODEC_NAME_MLX1_AFFINE4
                              : MNK_KV_CODEC_NAME_MLX1_UNROTATED,
        .key_bits = isTurbo        ? static_cast<uint32_t>(2 + random.below(7))
                    : hasByteCodes ? oneOf(random, {5u, 6u, 8u})
                                   : 4u,
        .scale_factor = !isTurbo && !isAffine && d.head_dim == 512 ? 0.5f : static_cast<float>(random.below(2)),
        .options = {.candidates = oneOf(random, {0u, 1u, 5u, 17u})}};
    d.quantized.value_bits = d.quantized.key_bits;
    if (coin(random, 1, 3))
      d.quantized.planes = oneOf(random, {MNK_KV_QUANTIZED_PLANES_KEYS, MNK_KV_QUANTIZED_PLANES_VALUES});
    for (uint32_t i = 0; i < 3; ++i) {
      if (isTurbo && (!isOfElements(i) || coin(random, 1, 8)) && coin(random, 1, 3)) fills_[i] = 1;
    }
  }

  void mutate(Seeded& random) {
    mnk_attention_cache_descriptor& d = descriptor_;
    switch (random.below(10)) {
      case 0:
        isNull_ = true;
        return;
      case 1:  // all of them just below the limit: more elements than can be counted
        for (uint32_t* extent : {&d.kv_heads, &d.head_dim, &d.capacity}) *extent = (1u << 31) - 1;
        d.is_storage_only = true;
        return;
      case 2:  // head dims that no block of codes fits
        d.value_head_dim = d.head_dim == 4 ? 512 : 4;
        d.quantized.value_bits = 4;
        return;
      case 3:
        fills_[random.below(3)] = oneOf(random, {0.0f, -0.0f, 1e-40f, std::nanf(""), -HUGE_VALF, 3.0f});
        return;
      case 4:
        channelHeads_ = 1 + random.below(4);
        fills_[random.below(3)] = 1;
        return;
      default:
        mutateANumber(random);
    }
  }

  void mutateANumber(Seeded& random) {
    std::vector<std::function<void()>> changes;
    forEachField(descriptor_, [&](auto& field) {
      using Field = std::remove_reference_t<decltype(field)>;
      const auto number = [&] {
        const uint64_t near = edge(random, {descriptor_.capacity, 1u << 31, UINT32_MAX});
        return static_cast<uint32_t>(coin(random, 1, 2) ? near : random.below(coin(random, 1, 2) ? 10 : 300));
      };
      if constexpr (std::is_same_v<Field, bool>) {
        changes.push_back([&field] { field = !field; });
      } else if constexpr (std::is_floating_point_v<Field>) {
        changes.push_back([&] { field = coin(random, 1, 2) ? 1e-7f : wildNumber(random); });
      } else if constexpr (std::is_enum_v<Field> || std::is_integral_v<Field>) {
        changes.push_back([&field, number] { field = test::number<Field>(number()); });
      }
    });
    changes[random.below(changes.size())]();
  }

  // Whether the vectors of a set of means or channel scales are not quantized.
  bool isOfElements(uint32_t set) const {
    return descriptor_.quantized.planes == (set == 1 ? MNK_KV_QUANTIZED_PLANES_KEYS : MNK_KV_QUANTIZED_PLANES_VALUES);
  }

  // Means of keys, means of values, channel scales of keys: those that are filled, all of one number.
  void makeChannels(Arena& arena, Seeded& random) {
    const mnk_attention_cache_descriptor& d = descriptor_;
    mnk_kv_quantized_storage& q = descriptor_.quantized;
    mnk_tensor** const tensors[] = {&q.key_means, &q.value_means, &q.key_channel_scales};
    for (uint32_t i = 0; i < 3; ++i) {
      const uint64_t headDim = i == 1 ? numbers().value_head_dim : d.head_dim;
      const uint64_t heads = channelHeads_.value_or(d.kv_heads);
      TensorSpec spec{.dtype = MNK_F32, .shape = {heads, headDim}, .region = i};
      // What no region holds is left out; extents that large are refused before.
      if (!fills_[i] || heads > 16 || headDim > 512 || !place(spec, random)) {
        fills_[i].reset();
        continue;
      }
      const std::vector<float> numbers(heads * headDim, *fills_[i]);
      arena.fill(spec, std::as_bytes(std::span(numbers)));
      *tensors[i] = arena.make(spec, random);
    }
  }

  CacheNumbers numbers() const {
    CacheNumbers cache{descriptor_};
    for (uint32_t i = 0; i < 3 && descriptor_.has_quantized; ++i) {
      cache.hasChannels |= fills_[i].has_value();
      cache.hasDenseChannels |= fills_[i] && isOfElements(i);
    }
    return cache.resolved();
  }

  std::string_view quantizationRefusal() const {
    const mnk_kv_quantize_options& options = descriptor_.quantized.options;
    if (static_cast<uint32_t>(descriptor_.quantized.codec) > MNK_KV_CODEC_NAME_MLX1_AFFINE4) return kNotACodec;
    if (std::max<uint32_t>(options.key_scale, options.value_scale) > MNK_KV_SCALE_RULE_LEAST_SQUARES) return kNotARule;
    if (static_cast<uint32_t>(options.non_finite) > MNK_KV_NON_FINITE_ZERO) return kNotATreatment;
    if (static_cast<uint32_t>(descriptor_.quantized.planes) > MNK_KV_QUANTIZED_PLANES_VALUES) return kNotPlanes;
    return {};
  }

  std::string_view channelRefusal() const {
    const bool hasAny = fills_[0] || fills_[1] || fills_[2];
    if (hasAny && channelHeads_.value_or(descriptor_.kv_heads) != descriptor_.kv_heads) return kChannelShape;
    for (uint32_t i = 0; i < 3; ++i) {
      if (fills_[i] && !(i == 2 ? std::isnormal(*fills_[i]) : std::isfinite(*fills_[i]))) return kUnusable;
    }
    return {};
  }

  std::string_view refusal() const {
    const mnk_attention_cache_descriptor& d = descriptor_;
    if (isNull_) return kNoDescriptor;
    if (static_cast<uint32_t>(d.dtype) > MNK_I32) return kNotADType;
    if (static_cast<uint32_t>(d.when_full) > MNK_KV_WRAP_RING) return kNotAWrap;
    if (d.has_quantized && !quantizationRefusal().empty()) return quantizationRefusal();
    if (!d.has_quantized && isFilled(d.quantized)) return kNoFlag;
    if (!d.has_sliding_window && isFilled(d.sliding_window)) return kNoWindowFlag;
    if (d.has_sliding_window && d.sliding_window.window == 0) return kNoWindow;
    const CacheNumbers cache = numbers();
    if (const std::string_view refused = cache.refusal(); !refused.empty()) return refused;
    if (d.has_quantized && !channelRefusal().empty()) return channelRefusal();
    unsigned __int128 elements = 1;
    for (const uint32_t extent : {d.sequences, d.kv_heads, cache.capacity, d.has_quantized ? 1 : d.head_dim}) {
      elements *= extent;
      if (elements > UINT64_MAX / 8) return kTooLarge;
    }
    return {};
  }

  std::string text_;
  bool isNull_ = false;
  mnk_attention_cache_descriptor descriptor_{};
  // What means of keys, means of values and channel scales of keys are filled with, and for how many heads.
  std::optional<float> fills_[3];
  std::optional<uint64_t> channelHeads_;
  uint64_t position_;
  uint32_t sequence_;
};

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  if (coin(random, 3, 4)) return makeCacheProgram(arena, random);
  return std::make_unique<AttentionCacheCase>(arena, random);
}

}  // namespace

Target attentionCacheTarget() {
  std::vector<std::string_view> refusals{
      kNoDescriptor, kNotADType,      kNotAWrap,  kNothing,       kExtent,        kDType,       kPinned,
      kTooLarge,     kNoKernel,       kNotACodec, kNotARule,      kNotATreatment, kCodec,       kHeadDims,
      kSequence,     kSmallForWindow, kNoWindow,  kUnusable,      kCut,           kScaleFactor, kCandidates,
      kNoChannels,   kChannelShape,   kNotPlanes, kDenseChannels, kLatentValues,  kNoFlag,      kNoWindowFlag};
  const auto ofPrograms = cacheProgramRefusals();
  refusals.insert(refusals.end(), ofPrograms.begin(), ofPrograms.end());
  return {.name = "AttentionCache", .share = 460, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
