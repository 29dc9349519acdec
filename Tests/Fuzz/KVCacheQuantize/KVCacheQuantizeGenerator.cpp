#include <algorithm>

#include "KVCacheQuantizeCall.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

namespace {

using Words = KVCacheQuantizeWords;

uint64_t codeBytesOf(const mnk_kv_codec& codec, uint64_t headDim) {
  return codec.name == MNK_MLX1 && codec.bits != 4 ? headDim : headDim * codec.bits / 8;
}

uint64_t headsOf(const Words& words) {
  return cacheDims(*words.write.keyCache, words.write.numbers.into.layout).heads;
}

struct Coding {
  mnk_kv_codec codec;
  uint64_t headDim;
};

Coding drawCoding(Seeded& random, mnk_kv_codec_name name) {
  if (name == MNK_TURBO) {
    const auto bits = static_cast<uint32_t>(2 + random.below(7));
    return {{name, bits, oneOf(random, {0.0f, 1.0f})}, oneOf<uint64_t>(random, {32, 32, 32, 64, 64, 128, 256, 512})};
  }
  const uint32_t bits = oneOf<uint32_t>(random, {4, 4, 4, 5, 6, 8});
  const uint64_t headDim =
      bits == 4 ? uint64_t{4} << random.below(coin(random, 1, 4) ? 9 : 6) : oneOf<uint64_t>(random, {256, 256, 512});
  const float factor = headDim == 512 && coin(random, 1, 2) ? oneOf(random, {0.5f, 1e-6f, 16.0f, 1e6f}) : 0;
  return {{name, bits, factor}, headDim};
}

TensorWords scalesOf(const TensorWords& codes, const Coding& coding, uint32_t arena) {
  TensorWords scales{.dtype = coding.codec.name == MNK_TURBO ? MNK_F16 : MNK_F32, .shape = codes.shape, .arena = arena};
  scales.shape.pop_back();
  if (coding.codec.name == MNK_MLX1 && coding.headDim == 512) scales.shape.push_back(2);
  return scales;
}

void setCoding(std::optional<TensorWords>& source, std::optional<TensorWords>& codes, QuantizedPlaneWords& plane,
               const Coding& coding, mnk_dtype dtype, uint32_t arena) {
  if (!codes) return;
  plane.codec = coding.codec;
  codes->dtype = MNK_U8;
  codes->shape.back() = codeBytesOf(coding.codec, coding.headDim);
  plane.scales = scalesOf(*codes, coding, arena);
  if (!source) return;
  source->dtype = dtype;
  source->shape.back() = coding.headDim;
}

void drawExtras(Words& words, Seeded& random, const Coding& keys, const Coding& values) {
  const auto factors = [&](uint64_t headDim, uint32_t arena) {
    return TensorWords{.dtype = MNK_F32, .shape = {headsOf(words), headDim}, .arena = arena};
  };
  if (keys.codec.name == MNK_TURBO) {
    if (coin(random, 1, 3)) words.keys.means = factors(keys.headDim, QuantizedArenas::kKeyMeans);
    if (coin(random, 1, 3)) words.keys.channelScales = factors(keys.headDim, QuantizedArenas::kChannelScales);
    if (words.write.valueCache && coin(random, 1, 3))
      words.values.means = factors(values.headDim, QuantizedArenas::kValueMeans);
  }
  if (words.isRead) return;
  if (coin(random, 1, 3)) words.counts = TensorWords{.dtype = MNK_U32, .shape = {2}, .arena = QuantizedArenas::kCounts};
  if (keys.codec.name == MNK_MLX1 && tokensOf(words.write) <= 1 && coin(random, 1, 2)) {
    words.probe = factors(keys.headDim, QuantizedArenas::kProbe);
  }
}

// Tokens whose positions have slots of their own, in tensors that hold no others.
bool makeReadable(Words& words, Seeded& random) {
  mnk_kv_cache_write& n = words.write.numbers;
  n.has_rows = n.has_tokens = n.source_is_ring = false;
  n.source_offset = 0;
  words.write.sequences = words.write.positions = {};
  const CacheDims cache = cacheDims(*words.write.keyCache, n.into.layout);
  const uint64_t tokens = sourceDims(*words.write.keys, n.source_layout).tokens;
  n.sequence = cache.sequences == 0 ? 0 : random.below(cache.sequences);
  n.position = n.into.wrap == MNK_RING && coin(random, 1, 8) ? edge(random, {uint64_t{1} << 33}) : random.below(20);
  if (words.write.values && coin(random, 1, 4)) words.write.keys.reset();
  const uint64_t pinned = n.position < n.into.pinned ? std::min(tokens, n.into.pinned - n.position) : 0;
  return n.into.wrap == MNK_RING
             ? n.position <= UINT64_MAX - tokens && tokens - pinned <= cache.capacity - n.into.pinned
             : n.position + tokens <= cache.capacity;
}

Words valid(Seeded& random, Bank bank, bool isRead) {
  for (;;) {
    Words words{.isRead = isRead, .write = validWrite(random, bank, false)};
    KVCacheWriteWords& write = words.write;
    const bool isFirst = bank == Bank::first;
    const mnk_kv_codec_name name = coin(random, 2, 3) ? MNK_TURBO : MNK_MLX1;
    const Coding keys = drawCoding(random, name);
    const Coding values = drawCoding(random, name);
    // Lanes of a kernel hold as many elements of a key as of a value.
    const auto [shorter, longer] = std::minmax(keys.headDim, values.headDim);
    if (write.valueCache && longer > 128 && shorter < longer / 32) continue;
    const mnk_dtype dtype = oneOf(random, {MNK_F32, MNK_F16, MNK_BF16});
    setCoding(write.keys, write.keyCache, words.keys, keys, dtype,
              isFirst ? QuantizedArenas::kFirstKeyScales : QuantizedArenas::kKeyScales);
    setCoding(write.values, write.valueCache, words.values, values, dtype,
              isFirst ? QuantizedArenas::kFirstValueScales : QuantizedArenas::kValueScales);
    words.size = words.ownSize() + (coin(random, 1, 16) ? random.below(words.ownSize() + 1) : 0);
    if (isRead && !makeReadable(words, random)) continue;
    if (!isFirst) drawExtras(words, random, keys, values);
    words.options.candidates = oneOf<uint32_t>(random, {0, 1, 1, 1, 5, 17});
    words.options.key_scale = test::number<mnk_kv_scale_rule>(static_cast<uint32_t>(random.below(3)));
    words.options.value_scale = test::number<mnk_kv_scale_rule>(static_cast<uint32_t>(random.below(3)));
    words.options.non_finite = coin(random, 1, 2) ? MNK_NON_FINITE_ZERO : MNK_NON_FINITE_PROPAGATE;
    words.domain = coin(random, 1, 2) ? MNK_ORIGINAL_DOMAIN : MNK_ROTATED_DOMAIN;
    bool isPlaced = isRead || viewSources(write, random);
    const bool isFused = write.keysView && write.values && write.keys->shape == write.values->shape &&
                         write.keys->offset == write.values->offset && write.keys->arena == write.values->arena;
    for (auto* tensor : tensorsOf(words)) {
      if (*tensor) isPlaced = place(**tensor, random) && isPlaced;
    }
    if (isFused) write.values = write.keys;
    if (isPlaced) return words;
  }
}

}  // namespace

std::vector<std::optional<TensorWords>*> tensorsOf(KVCacheQuantizeWords& words) {
  KVCacheWriteWords& write = words.write;
  return {&write.keys,
          &write.values,
          &write.keyCache,
          &write.valueCache,
          &write.sequences.tensor,
          &write.positions.tensor,
          &words.keys.scales,
          &words.keys.means,
          &words.keys.channelScales,
          &words.values.scales,
          &words.values.means,
          &words.values.channelScales,
          &words.counts,
          &words.probe};
}

KVCacheQuantizeWords validQuantize(Seeded& random, Bank bank) {
  return valid(random, bank, false);
}
KVCacheQuantizeWords validDequantize(Seeded& random, Bank bank) {
  return valid(random, bank, true);
}

}  // namespace mnk::fuzz
