#include <algorithm>

#include "KVCacheQuantizeCall.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Spec = KVCacheQuantizeSpec;

uint64_t codeBytesOf(const mnk_kv_codec& codec, uint64_t headDim) {
  return codec.name == MNK_MLX1 && codec.bits != 4 ? headDim : headDim * codec.bits / 8;
}

uint64_t headsOf(const Spec& spec) {
  return cacheDims(*spec.write.keyCache, spec.write.numbers.into.layout).heads;
}

struct Coding {
  mnk_kv_codec codec;
  uint64_t headDim;
};

Coding drawCoding(Seeded& random, mnk_kv_codec_name name) {
  if (name == MNK_TURBO) {
    const auto bits = static_cast<uint32_t>(2 + random.below(7));
    return {{name, bits, oneOf(random, {0.0f, 1.0f})},
            oneOf<uint64_t>(random, {32, 32, 32, 64, 64, 80, 96, 112, 128, 192, 256, 512})};
  }
  const uint32_t bits = oneOf<uint32_t>(random, {4, 4, 4, 5, 6, 8});
  const uint64_t headDim =
      bits == 4 ? uint64_t{4} << random.below(coin(random, 1, 4) ? 9 : 6) : oneOf<uint64_t>(random, {256, 256, 512});
  const float factor = headDim == 512 && coin(random, 1, 2) ? oneOf(random, {0.5f, 1e-6f, 16.0f, 1e6f}) : 0;
  return {{name, bits, factor}, headDim};
}

TensorSpec scalesOf(const TensorSpec& codes, const Coding& coding, uint32_t region) {
  TensorSpec scales{
      .dtype = coding.codec.name == MNK_TURBO ? MNK_F16 : MNK_F32, .shape = codes.shape, .region = region};
  scales.shape.pop_back();
  if (coding.codec.name == MNK_MLX1 && coding.headDim == 512) scales.shape.push_back(2);
  return scales;
}

void setCoding(std::optional<TensorSpec>& source, std::optional<TensorSpec>& codes, QuantizedPlaneSpec& plane,
               const Coding& coding, mnk_dtype dtype, uint32_t region) {
  if (!codes) return;
  plane.codec = coding.codec;
  codes->dtype = MNK_U8;
  codes->shape.back() = codeBytesOf(coding.codec, coding.headDim);
  plane.scales = scalesOf(*codes, coding, region);
  if (!source) return;
  source->dtype = dtype;
  source->shape.back() = coding.headDim;
}

void drawExtras(Spec& spec, Seeded& random, const Coding& keys, const Coding& values) {
  const auto factors = [&](uint64_t headDim, uint32_t region) {
    return TensorSpec{.dtype = MNK_F32, .shape = {headsOf(spec), headDim}, .region = region};
  };
  if (keys.codec.name == MNK_TURBO) {
    if (coin(random, 1, 3)) spec.keys.means = factors(keys.headDim, QuantizedRegions::kKeyMeans);
    if (coin(random, 1, 3)) spec.keys.channelScales = factors(keys.headDim, QuantizedRegions::kChannelScales);
    if (spec.write.valueCache && coin(random, 1, 3))
      spec.values.means = factors(values.headDim, QuantizedRegions::kValueMeans);
  }
  if (spec.isRead) return;
  if (coin(random, 1, 3)) spec.counts = TensorSpec{.dtype = MNK_U32, .shape = {2}, .region = QuantizedRegions::kCounts};
  if (keys.codec.name == MNK_MLX1 && tokensOf(spec.write) <= 1 && coin(random, 1, 2)) {
    spec.probe = factors(keys.headDim, QuantizedRegions::kProbe);
  }
}

// Tokens whose positions have slots of their own, in tensors that hold no others.
bool makeReadable(Spec& spec, Seeded& random) {
  mnk_kv_cache_write& n = spec.write.numbers;
  n.has_rows = n.has_tokens = n.source_is_ring = false;
  n.source_offset = 0;
  spec.write.sequences = spec.write.positions = {};
  const CacheDims cache = cacheDims(*spec.write.keyCache, n.into.layout);
  const uint64_t tokens = sourceDims(*spec.write.keys, n.source_layout).tokens;
  n.sequence = cache.sequences == 0 ? 0 : random.below(cache.sequences);
  n.position = n.into.wrap == MNK_RING && coin(random, 1, 8) ? edge(random, {uint64_t{1} << 33}) : random.below(20);
  if (spec.write.values && coin(random, 1, 4)) spec.write.keys.reset();
  const uint64_t pinned = n.position < n.into.pinned ? std::min(tokens, n.into.pinned - n.position) : 0;
  return n.into.wrap == MNK_RING
             ? n.position <= UINT64_MAX - tokens && tokens - pinned <= cache.capacity - n.into.pinned
             : n.position + tokens <= cache.capacity;
}

Spec valid(Seeded& random, Bank bank, bool isRead) {
  for (;;) {
    Spec spec{.isRead = isRead, .write = validWrite(random, bank, false)};
    KVCacheWriteSpec& write = spec.write;
    const bool isFirst = bank == Bank::first;
    const mnk_kv_codec_name name = coin(random, 2, 3) ? MNK_TURBO : MNK_MLX1;
    const Coding keys = drawCoding(random, name);
    const Coding values = drawCoding(random, name);
    // Lanes of a kernel hold as many elements of a key as of a value.
    const auto [shorter, longer] = std::minmax(keys.headDim, values.headDim);
    if (write.valueCache && longer > 128 && shorter < longer / 32) continue;
    const mnk_dtype dtype = oneOf(random, {MNK_F32, MNK_F16, MNK_BF16});
    setCoding(write.keys, write.keyCache, spec.keys, keys, dtype,
              isFirst ? QuantizedRegions::kFirstKeyScales : QuantizedRegions::kKeyScales);
    setCoding(write.values, write.valueCache, spec.values, values, dtype,
              isFirst ? QuantizedRegions::kFirstValueScales : QuantizedRegions::kValueScales);
    spec.size = spec.ownSize() + (coin(random, 1, 16) ? random.below(spec.ownSize() + 1) : 0);
    if (isRead && !makeReadable(spec, random)) continue;
    if (!isFirst) drawExtras(spec, random, keys, values);
    spec.options.candidates = oneOf<uint32_t>(random, {0, 1, 1, 1, 5, 17});
    spec.options.key_scale = test::number<mnk_kv_scale_rule>(static_cast<uint32_t>(random.below(3)));
    spec.options.value_scale = test::number<mnk_kv_scale_rule>(static_cast<uint32_t>(random.below(3)));
    spec.options.non_finite = coin(random, 1, 2) ? MNK_NON_FINITE_ZERO : MNK_NON_FINITE_PROPAGATE;
    spec.domain = coin(random, 1, 2) ? MNK_ORIGINAL_DOMAIN : MNK_ROTATED_DOMAIN;
    bool isPlaced = isRead || viewSources(write, random);
    const bool isFused = write.keysView && write.values && write.keys->shape == write.values->shape &&
                         write.keys->offset == write.values->offset && write.keys->region == write.values->region;
    for (auto* tensor : tensorsOf(spec)) {
      if (*tensor) isPlaced = place(**tensor, random) && isPlaced;
    }
    if (isFused) write.values = write.keys;
    if (isPlaced) return spec;
  }
}

}  // namespace

std::vector<std::optional<TensorSpec>*> tensorsOf(KVCacheQuantizeSpec& spec) {
  KVCacheWriteSpec& write = spec.write;
  return {&write.keys,
          &write.values,
          &write.keyCache,
          &write.valueCache,
          &write.sequences.tensor,
          &write.positions.tensor,
          &spec.keys.scales,
          &spec.keys.means,
          &spec.keys.channelScales,
          &spec.values.scales,
          &spec.values.means,
          &spec.values.channelScales,
          &spec.counts,
          &spec.probe};
}

KVCacheQuantizeSpec validQuantize(Seeded& random, Bank bank) {
  return valid(random, bank, false);
}
KVCacheQuantizeSpec validDequantize(Seeded& random, Bank bank) {
  return valid(random, bank, true);
}

}  // namespace mnk::fuzz
