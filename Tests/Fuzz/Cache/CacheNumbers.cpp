#include "CacheNumbers.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "Arena.hpp"

namespace mnk::fuzz {

namespace {

// Codes and scales of one vector; 0 where the codec has none.
uint64_t vectorBytes(uint32_t codec, uint32_t bits, uint64_t headDim) {
  const bool isPower = headDim != 0 && (headDim & (headDim - 1)) == 0;
  const bool hasBlocks = headDim == 80 || headDim == 96 || headDim == 112 || headDim == 192;
  if (codec == 0) {
    const bool isLength = hasBlocks || (isPower && headDim >= 32 && headDim <= 512);
    return isLength && bits >= 2 && bits <= 8 ? bits * headDim / 8 + 2 : 0;
  }
  if (!isPower || codec > 3) return 0;
  const bool isVariant = codec != 1;
  if (isVariant && ((bits == 4) != (codec == 3) || (headDim != 256 && headDim != 512))) return 0;
  const uint64_t scales = headDim == 512 && codec != 3 ? 8 : 4;
  if (bits == 4) return headDim >= 4 && headDim <= 4096 ? headDim / 2 + scales : 0;
  return (bits == 5 || bits == 6 || bits == 8) && (headDim == 256 || headDim == 512) ? headDim + scales : 0;
}

bool hasKernel(uint64_t keyDim, uint64_t valueDim, bool isQuantized, bool isLatent) {
  if (isLatent) return keyDim == 64 && valueDim == 512;
  const auto isOneOf = [](uint64_t dim, std::initializer_list<uint64_t> dims) {
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  };
  if (isQuantized) {
    const auto isCoded = [&](uint64_t dim) { return isOneOf(dim, {32, 64, 80, 96, 112, 128, 192, 256}); };
    return (isCoded(keyDim) && isCoded(valueDim)) || (keyDim == 512 && valueDim == 512);
  }
  const auto isShort = [](uint64_t dim) { return dim >= 8 && dim <= 256 && dim % 8 == 0; };
  return (isShort(keyDim) && isShort(valueDim)) || (valueDim == 512 && isOneOf(keyDim, {512, 576}));
}

// Slots that a sliding window needs, pinned ones included.
uint64_t slotsForWindow(const CacheNumbers& cache) {
  const auto& [window, maxRows, maxDraft] = cache.sliding_window;
  return uint64_t{cache.pinned} + window + std::max(maxRows == 0 ? 64 : maxRows, maxDraft) - 1;
}

}  // namespace

CacheNumbers CacheNumbers::resolved() const {
  CacheNumbers all = *this;
  if (value_head_dim == 0) all.value_head_dim = latent_dim != 0 ? latent_dim : head_dim;
  if (has_quantized && quantized.scale_factor == 0) all.quantized.scale_factor = 1;
  if (has_quantized && quantized.options.candidates == 0) all.quantized.options.candidates = 5;
  if (!has_sliding_window) all.sliding_window = {};
  if (all.window() == 0) return all;
  all.when_full = MNK_KV_WRAP_RING;
  if (capacity == 0) all.capacity = static_cast<uint32_t>(std::min<uint64_t>(slotsForWindow(*this), UINT32_MAX));
  return all;
}

std::string_view CacheNumbers::refusal() const {
  if (std::min({kv_heads, head_dim, capacity, sequences}) == 0) return kNothing;
  if (std::max({kv_heads, head_dim, value_head_dim, capacity, sequences}) >= 1u << 31) return kExtent;
  if (window() != 0 && capacity < slotsForWindow(*this)) return kSmallForWindow;
  if (latent_dim != 0 && value_head_dim != latent_dim) return kLatentValues;
  const mnk_kv_quantized_storage& q = quantized;
  if ((!has_quantized || q.planes != MNK_KV_QUANTIZED_PLANES_BOTH) && dtype > MNK_BF16) return kDType;
  if (pinned != 0 && (!isRing() || pinned >= capacity)) return kPinned;
  if (!is_storage_only && !hasKernel(head_dim, value_head_dim, has_quantized, latent_dim != 0)) return kNoKernel;
  if (!has_quantized) return {};
  // What is dense has a head dim of the codec beside it.
  const bool hasKeys = q.planes != MNK_KV_QUANTIZED_PLANES_VALUES, hasValues = q.planes != MNK_KV_QUANTIZED_PLANES_KEYS;
  const uint32_t bitsOfKeys = hasKeys ? q.key_bits : q.value_bits, bitsOfValues = hasValues ? q.value_bits : q.key_bits;
  if (vectorBytes(q.codec, bitsOfKeys, head_dim) == 0 || vectorBytes(q.codec, bitsOfValues, value_head_dim) == 0)
    return kCodec;
  const uint32_t longest = std::max(head_dim, value_head_dim), shortest = std::min(head_dim, value_head_dim);
  if (shortest < std::max(longest / 32, 4u)) return kHeadDims;
  const bool mayScale = (q.codec == MNK_KV_CODEC_NAME_MLX1 || q.codec == MNK_KV_CODEC_NAME_MLX1_UNROTATED) &&
                        (!hasKeys || head_dim == 512) && (!hasValues || value_head_dim == 512);
  if (q.scale_factor != 1 && !(mayScale && q.scale_factor >= 1e-6f && q.scale_factor <= 1e6f)) return kScaleFactor;
  const uint32_t candidates = q.options.candidates;
  if (candidates != 1 && candidates != 5 && candidates != 17) return kCandidates;
  if (hasChannels && q.codec != MNK_KV_CODEC_NAME_TURBO) return kNoChannels;
  if (hasDenseChannels) return kDenseChannels;
  return {};
}

uint64_t CacheNumbers::slotBytes() const {
  const auto bytes = [&](mnk_kv_quantized_planes other, uint32_t bits, uint64_t dim) {
    const bool isQuantized = has_quantized && quantized.planes != other;
    return isQuantized ? vectorBytes(quantized.codec, bits, dim) : dim * (dtype == MNK_F32 ? 4 : 2);
  };
  return bytes(MNK_KV_QUANTIZED_PLANES_VALUES, quantized.key_bits, head_dim) +
         bytes(MNK_KV_QUANTIZED_PLANES_KEYS, quantized.value_bits, value_head_dim);
}

unsigned __int128 CacheNumbers::bytes() const {
  // Three numbers below 2^31 and one below 2^35: 128 bits hold them.
  return static_cast<unsigned __int128>(uint64_t{kv_heads} * capacity) * sequences * slotBytes();
}

CacheNumbers drawCache(test::Seeded& random) {
  const auto below = [&](uint64_t end) { return static_cast<uint32_t>(random.below(end)); };
  CacheNumbers cache{{.kv_heads = 1 + below(2),
                      .head_dim = 8 * (1 + below(3)),
                      .capacity = 1 + below(9),
                      .sequences = 1 + below(3),
                      .dtype = oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}),
                      .when_full = coin(random, 3, 4) ? MNK_KV_WRAP_RING : MNK_KV_WRAP_LINEAR}};
  if (cache.isRing() && coin(random, 1, 2)) cache.pinned = below(std::min(cache.capacity, 4u));
  if (cache.isRing() && coin(random, 1, 4)) {
    cache.has_sliding_window = true;
    cache.sliding_window = {.window = 1 + below(5), .max_rows = 1 + below(3), .max_draft = below(4)};
    cache.capacity = 0;
  }
  if (coin(random, 1, 6)) {
    cache.has_quantized = true;
    cache.quantized = {.key_bits = 8,
                       .value_bits = 8,
                       .planes = oneOf(random, {MNK_KV_QUANTIZED_PLANES_BOTH, MNK_KV_QUANTIZED_PLANES_KEYS,
                                                MNK_KV_QUANTIZED_PLANES_VALUES})};
    cache.head_dim = 32;
  } else if (coin(random, 1, 16)) {
    cache.is_storage_only = true;
    cache.head_dim = 8 * below(3) + 1 + below(7);
  }
  if (!cache.is_storage_only && coin(random, 1, 8)) {
    cache.kv_heads = 1, cache.head_dim = 64, cache.latent_dim = 512;
  }
  return cache.resolved();
}

}  // namespace mnk::fuzz
