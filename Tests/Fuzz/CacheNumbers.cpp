#include "CacheNumbers.hpp"

#include <algorithm>
#include <cmath>

namespace mnk::fuzz {

namespace {

// Codes and scales of one vector; 0 where the codec has none.
uint64_t vectorBytes(uint32_t codec, uint32_t bits, uint64_t headDim) {
  const bool isPower = headDim != 0 && (headDim & (headDim - 1)) == 0;
  if (!isPower) return 0;
  if (codec == 0) return bits >= 2 && bits <= 8 && headDim >= 32 && headDim <= 512 ? bits * headDim / 8 + 2 : 0;
  const uint64_t scales = headDim == 512 ? 8 : 4;
  if (bits == 4) return headDim >= 4 && headDim <= 4096 ? headDim / 2 + scales : 0;
  return (bits == 5 || bits == 6 || bits == 8) && (headDim == 256 || headDim == 512) ? headDim + scales : 0;
}

}  // namespace

std::string_view CacheNumbers::refusal() const {
  if (std::min({kvHeads, headDim, capacity, sequences}) == 0) return kNothing;
  if (std::max({kvHeads, headDim, valueHeadDim, capacity, sequences}) >= 1u << 31) return kExtent;
  if (!isQuantized && dtype > 2) return kDType;
  if (pinned != 0 && (!isRing || pinned >= capacity)) return kPinned;
  if (!isQuantized) return {};
  if (vectorBytes(codec, keyBits, headDim) == 0 || vectorBytes(codec, valueBits, valueHeadDim) == 0) return kCodec;
  const uint32_t longest = std::max(headDim, valueHeadDim), shortest = std::min(headDim, valueHeadDim);
  if (shortest < std::max(longest / 32, 4u)) return kHeadDims;
  const bool mayScale = codec == 1 && headDim == 512 && valueHeadDim == 512;
  if (scaleFactor != 1 && !(mayScale && scaleFactor >= 1e-6f && scaleFactor <= 1e6f)) return kScaleFactor;
  if (candidates != 1 && candidates != 5 && candidates != 17) return kCandidates;
  if (hasChannels && codec != 0) return kNoChannels;
  return {};
}

uint64_t CacheNumbers::slotBytes() const {
  if (!isQuantized) return (uint64_t{headDim} + valueHeadDim) * (dtype == 0 ? 4 : 2);
  return vectorBytes(codec, keyBits, headDim) + vectorBytes(codec, valueBits, valueHeadDim);
}

unsigned __int128 CacheNumbers::bytes() const {
  // Three numbers below 2^31 and one below 2^35: 128 bits hold them.
  return static_cast<unsigned __int128>(uint64_t{kvHeads} * capacity) * sequences * slotBytes();
}

}  // namespace mnk::fuzz
