#include "AttentionCacheTarget.hpp"

#include <algorithm>

#include "Judge.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;

constexpr std::string_view kNoDescriptor = "mnk_cache_descriptor is missing";
constexpr std::string_view kSize = "mnk_cache_descriptor has the wrong size";
constexpr std::string_view kNotADType = "the number is not a dtype";
constexpr std::string_view kNotAWrap = "the number is not a wrap";
constexpr std::string_view kNothing = "the cache would hold nothing";
constexpr std::string_view kExtent = "an extent is too large for the kernels";
constexpr std::string_view kDType = "the cache cannot store this dtype";
constexpr std::string_view kPinned = "the cache pins too many positions";
constexpr std::string_view kTooLarge = "the shape holds more elements than 64-bit sizes can count";
constexpr std::string_view kNoMemory = "no memory for a buffer";
constexpr std::string_view kSequence = "the sequence is not in the cache";
constexpr std::string_view kCut = "the sequence cannot be cut there";

class AttentionCacheCase final : public Case {
 public:
  AttentionCacheCase(World&, Seeded& random) {
    mnk_cache_descriptor& d = storage_.descriptor;
    d = {.size = sizeof d,
         .kv_heads = static_cast<uint32_t>(1 + random.below(3)),
         .head_dim = static_cast<uint32_t>(1 + random.below(8)),
         .value_head_dim = static_cast<uint32_t>(random.below(8)),
         .capacity = static_cast<uint32_t>(1 + random.below(9)),
         .sequences = static_cast<uint32_t>(1 + random.below(3)),
         .dtype = oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}),
         .when_full = coin(random, 2, 3) ? MNK_RING : MNK_LINEAR,
         .pinned = 0};
    if (d.when_full == MNK_RING) d.pinned = static_cast<uint32_t>(random.below(d.capacity));
    position_ = coin(random, 3, 4) ? 0 : edge(random, {d.capacity});
    sequence_ = static_cast<uint32_t>(coin(random, 3, 4) ? random.below(d.sequences) : edge(random, {d.sequences}));
    if (coin(random, 1, 2)) attack(random);
    // A cache keeps a few words for every sequence: as many as there may be would fill the machine.
    if (refusal().empty()) d.sequences = std::min(d.sequences, 1u << 16);
  }

  std::string text() const override {
    const mnk_cache_descriptor& d = storage_.descriptor;
    return fmt::format(
        "AttentionCache{} (size {}): {} heads of {} and {}, capacity {}, {} sequences, dtype {}, wrap {}, {} pinned; "
        "cut "
        "sequence {} at {}",
        isNull_ ? " NULL" : "", d.size, d.kv_heads, d.head_dim, d.value_head_dim, d.capacity, d.sequences,
        static_cast<uint32_t>(d.dtype), static_cast<uint32_t>(d.when_full), d.pinned, sequence_, position_);
  }

  Verdict run(World& world) override {
    const mnk_cache_descriptor& d = storage_.descriptor;
    test::Caught caught;
    const Owned<mnk_cache> cache(mnk_cache_make(world.device(0), isNull_ ? nullptr : &d, caught.out()),
                                 mnk_cache_release);
    const std::string_view expected = refusal();
    // Whether there is memory for a cache that is merely large is not the descriptor's to say.
    if (!cache && expected.empty() && bytes() > kSmall && mnk_error_get_code(caught.get()) == MNK_OUT_OF_MEMORY) {
      return judge(caught, false, kNoMemory);
    }
    Verdict verdict = judge(caught, bool(cache), expected);
    if (!cache || !verdict.failure.empty()) return verdict;
    if (mnk_cache_bytes(cache.get()) != bytes()) {
      verdict.failure = fmt::format("the cache has {} bytes, expected {}", mnk_cache_bytes(cache.get()), bytes());
      return verdict;
    }
    const bool isCut = mnk_cache_truncate(cache.get(), position_, sequence_, caught.out());
    verdict = judge(caught, isCut, sequence_ >= d.sequences ? kSequence : (position_ == 0 ? "" : kCut));
    for (uint32_t sequence = 0; sequence < std::min(d.sequences, 4u); ++sequence) {
      if (mnk_cache_next_position(cache.get(), sequence) == 0 && mnk_cache_count(cache.get(), sequence) == 0) continue;
      verdict.failure = "an empty sequence has positions";
    }
    return verdict;
  }

 private:
  static constexpr unsigned __int128 kSmall = 1 << 20;

  void attack(Seeded& random) {
    mnk_cache_descriptor& d = storage_.descriptor;
    const auto number = static_cast<uint32_t>(edge(random, {d.capacity, 1u << 31, UINT32_MAX}));
    uint32_t* const extents[] = {&d.kv_heads, &d.head_dim, &d.value_head_dim, &d.capacity, &d.sequences, &d.pinned};
    switch (random.below(10)) {
      case 0:
        isNull_ = true;
        return;
      case 1:
        d.size = edge(random, {sizeof d, sizeof d + 8, 2 * sizeof d});
        std::fill(std::begin(storage_.tail), std::end(storage_.tail), static_cast<uint8_t>(random.below(2)));
        return;
      case 2:
        d.dtype = test::number<mnk_dtype>(coin(random, 1, 2) ? static_cast<uint32_t>(random.below(8)) : number);
        return;
      case 3:
        d.when_full = test::number<mnk_kv_wrap>(number);
        return;
      case 4:  // all of them just below the limit: more elements than can be counted
        for (uint32_t* extent : {&d.kv_heads, &d.head_dim, &d.capacity}) *extent = (1u << 31) - 1;
        return;
      default:
        *extents[random.below(std::size(extents))] = number;
    }
  }

  unsigned __int128 bytes() const {
    const mnk_cache_descriptor& d = storage_.descriptor;
    const uint64_t headDims = uint64_t{d.head_dim} + (d.value_head_dim == 0 ? d.head_dim : d.value_head_dim);
    return static_cast<unsigned __int128>(uint64_t{d.kv_heads} * d.capacity) * d.sequences * headDims *
           byteSize(static_cast<DType>(d.dtype));
  }

  std::string_view refusal() const {
    const mnk_cache_descriptor& d = storage_.descriptor;
    if (isNull_) return kNoDescriptor;
    if (d.size < sizeof d || d.size > 2 * sizeof d || (d.size > sizeof d && storage_.tail[0] != 0)) return kSize;
    if (static_cast<uint32_t>(d.dtype) > MNK_I32) return kNotADType;
    if (static_cast<uint32_t>(d.when_full) > MNK_RING) return kNotAWrap;
    if (std::min({d.kv_heads, d.head_dim, d.capacity, d.sequences}) == 0) return kNothing;
    if (std::max({d.kv_heads, d.head_dim, d.value_head_dim, d.capacity, d.sequences}) >= 1u << 31) return kExtent;
    if (d.dtype > MNK_BF16) return kDType;
    if (d.pinned != 0 && (d.when_full != MNK_RING || d.pinned >= d.capacity)) return kPinned;
    unsigned __int128 elements = 1;
    for (const uint32_t extent : {d.sequences, d.kv_heads, d.capacity, d.head_dim}) {
      elements *= extent;
      if (elements > UINT64_MAX / 8) return kTooLarge;
    }
    return {};
  }

  bool isNull_ = false;
  struct {
    mnk_cache_descriptor descriptor;
    uint8_t tail[sizeof(mnk_cache_descriptor)];
  } storage_{};
  uint64_t position_;
  uint32_t sequence_;
};

std::unique_ptr<Case> makeCase(World& world, Seeded& random) {
  return std::make_unique<AttentionCacheCase>(world, random);
}

}  // namespace

Target attentionCacheTarget() {
  return {.name = "AttentionCache",
          .share = 80,
          .refusals = {kNoDescriptor, kSize, kNotADType, kNotAWrap, kNothing, kExtent, kDType, kPinned, kTooLarge,
                       kSequence, kCut},
          .make = makeCase};
}

}  // namespace mnk::fuzz
