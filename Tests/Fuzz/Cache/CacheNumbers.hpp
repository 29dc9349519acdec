// The rules of AttentionCache.hpp for a descriptor, restated over plain numbers.
#pragma once
#include <cstdint>
#include <string_view>

#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/mnk_attention_cache.h"

namespace mnk::fuzz {

constexpr std::string_view kNothing = "the cache would hold nothing";
constexpr std::string_view kExtent = "an extent is too large for the kernels";
constexpr std::string_view kDType = "the cache cannot store this dtype";
constexpr std::string_view kPinned = "the cache pins too many positions";
constexpr std::string_view kLatentValues = "values are not the latent part of keys";
constexpr std::string_view kNoWindow = "a sliding window sees nothing";
constexpr std::string_view kSmallForWindow = "the capacity is too small for the sliding window";
constexpr std::string_view kNoKernel = "there is no attention kernel for these head dims";
constexpr std::string_view kCodec = "the codec does not have these bits or this head dim";
constexpr std::string_view kHeadDims = "head dims of keys and values are too different";
constexpr std::string_view kScaleFactor = "the scale factor cannot be used";
constexpr std::string_view kCandidates = "the number of candidates is not supported";
constexpr std::string_view kNoChannels = "the codec has no means or channel scales";
constexpr std::string_view kDenseChannels = "means or channel scales belong to dense vectors";
constexpr std::string_view kUnusable = "means or channel scales hold a number that cannot be used";

// A descriptor. It is its own reference: numbers, and no code of the library.
struct CacheNumbers : mnk_attention_cache_descriptor {
  bool hasChannels = false;       // means or channel scales
  bool hasDenseChannels = false;  // those of what is not quantized

  bool isRing() const { return when_full == MNK_KV_WRAP_RING; }
  uint32_t window() const { return sliding_window.window; }  // 0: none
  uint32_t queryDim() const { return latent_dim + head_dim; }
  // What fields are that were left to their defaults.
  CacheNumbers resolved() const;

  // Of resolved ones: what the error must say, but for that about means and channel scales themselves; empty where all
  // is right.
  std::string_view refusal() const;
  // Keys and values of one slot of one head; 0 where there is no such codec.
  uint64_t slotBytes() const;
  unsigned __int128 bytes() const;
};

// One that can be made.
CacheNumbers drawCache(test::Seeded& random);

}  // namespace mnk::fuzz
