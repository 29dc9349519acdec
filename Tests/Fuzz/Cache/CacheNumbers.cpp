#include "CacheNumbers.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "Numbers.hpp"

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
  return uint64_t{cache.pinned} + cache.window + std::max(cache.maxRows == 0 ? 64 : cache.maxRows, cache.maxDraft) - 1;
}

}  // namespace

CacheNumbers CacheNumbers::resolved() const {
  CacheNumbers all = *this;
  if (valueHeadDim == 0) all.valueHeadDim = latentDim != 0 ? latentDim : headDim;
  if (window == 0) return all;
  all.isRing = true;
  if (capacity == 0) all.capacity = static_cast<uint32_t>(std::min<uint64_t>(slotsForWindow(*this), UINT32_MAX));
  return all;
}

std::string_view CacheNumbers::refusal() const {
  if (std::min({kvHeads, headDim, capacity, sequences}) == 0) return kNothing;
  if (std::max({kvHeads, headDim, valueHeadDim, capacity, sequences}) >= 1u << 31) return kExtent;
  if (window != 0 && capacity < slotsForWindow(*this)) return kSmallForWindow;
  if (latentDim != 0 && valueHeadDim != latentDim) return kLatentValues;
  if ((!isQuantized || planes != 0) && dtype > 2) return kDType;
  if (pinned != 0 && (!isRing || pinned >= capacity)) return kPinned;
  if (!isStorageOnly && !hasKernel(headDim, valueHeadDim, isQuantized, latentDim != 0)) return kNoKernel;
  if (!isQuantized) return {};
  // What is dense has a head dim of the codec beside it.
  const uint32_t bitsOfKeys = planes == 2 ? valueBits : keyBits, bitsOfValues = planes == 1 ? keyBits : valueBits;
  if (vectorBytes(codec, bitsOfKeys, headDim) == 0 || vectorBytes(codec, bitsOfValues, valueHeadDim) == 0)
    return kCodec;
  const uint32_t longest = std::max(headDim, valueHeadDim), shortest = std::min(headDim, valueHeadDim);
  if (shortest < std::max(longest / 32, 4u)) return kHeadDims;
  const bool mayScale =
      (codec == 1 || codec == 2) && (planes == 2 || headDim == 512) && (planes == 1 || valueHeadDim == 512);
  if (scaleFactor != 1 && !(mayScale && scaleFactor >= 1e-6f && scaleFactor <= 1e6f)) return kScaleFactor;
  if (candidates != 1 && candidates != 5 && candidates != 17) return kCandidates;
  if (hasChannels && codec != 0) return kNoChannels;
  if (hasDenseChannels) return kDenseChannels;
  return {};
}

uint64_t CacheNumbers::slotBytes() const {
  const uint64_t elementBytes = dtype == 0 ? 4 : 2;
  const bool hasQuantizedKeys = isQuantized && planes != 2, hasQuantizedValues = isQuantized && planes != 1;
  return (hasQuantizedKeys ? vectorBytes(codec, keyBits, headDim) : headDim * elementBytes) +
         (hasQuantizedValues ? vectorBytes(codec, valueBits, valueHeadDim) : valueHeadDim * elementBytes);
}

unsigned __int128 CacheNumbers::bytes() const {
  // Three numbers below 2^31 and one below 2^35: 128 bits hold them.
  return static_cast<unsigned __int128>(uint64_t{kvHeads} * capacity) * sequences * slotBytes();
}

CacheNumbers drawCache(test::Seeded& random) {
  const auto below = [&](uint64_t end) { return static_cast<uint32_t>(random.below(end)); };
  CacheNumbers cache{.kvHeads = 1 + below(2),
                     .headDim = 8 * (1 + below(3)),
                     .capacity = 1 + below(9),
                     .sequences = 1 + below(3),
                     .dtype = below(3),
                     .isRing = coin(random, 3, 4)};
  if (cache.isRing && coin(random, 1, 2)) cache.pinned = below(std::min(cache.capacity, 4u));
  if (cache.isRing && coin(random, 1, 4)) {
    cache.window = 1 + below(5), cache.maxRows = 1 + below(3), cache.maxDraft = below(4);
    cache.capacity = 0;
  }
  if (coin(random, 1, 6)) {
    cache.isQuantized = true;
    cache.planes = below(3);
    cache.headDim = 32, cache.keyBits = cache.valueBits = 8;
  } else if (coin(random, 1, 16)) {
    cache.isStorageOnly = true;
    cache.headDim = 8 * below(3) + 1 + below(7);
  }
  if (!cache.isStorageOnly && coin(random, 1, 8)) {
    cache.kvHeads = 1, cache.headDim = 64, cache.latentDim = 512;
    cache.keyBits = cache.valueBits = 8;
  }
  return cache.resolved();
}

}  // namespace mnk::fuzz
