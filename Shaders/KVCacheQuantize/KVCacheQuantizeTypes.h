// What KVCacheQuantize's host code and kernels agree on: buffer indices, parameters.
#pragma once
#include "../Common/CacheAddressTypes.h"
#include "../Common/KVCodecTypes.h"

enum KVCacheQuantizeBuffer {
  kKVCacheQuantizeParams = 0,
  kKVCacheQuantizeKeys = 1,
  kKVCacheQuantizeValues = 2,
  kKVCacheQuantizeKeyCodes = 3,
  kKVCacheQuantizeValueCodes = 4,
  kKVCacheQuantizeKeyScales = 5,
  kKVCacheQuantizeValueScales = 6,
  kKVCacheQuantizeSequences = 7,
  kKVCacheQuantizePositions = 8,
  kKVCacheQuantizeKeyMeans = 9,
  kKVCacheQuantizeValueMeans = 10,
  kKVCacheQuantizeChannelScales = 11,
  kKVCacheQuantizeCounts = 12,
  kKVCacheQuantizeProbe = 13,
  kKVCacheQuantizeRotation = 14,
  kKVCacheQuantizeFrequencies = 15,
  kKVCacheQuantizeQueries = 16,
  kKVCacheQuantizeRotatedQueries = 17,
  kKVCacheQuantizeRotaryPositions = 18,
  kKVCacheQuantizeRotaryOffsets = 19,
};

enum KVCacheQuantizeFlags {
  kKVUnbiasedKeys = 1,
  kKVUnbiasedValues = 2,
  kKVPropagatesNonFinite = 4,
};

#define MNK_KV_CACHE_QUANTIZE_PARAMS(FIELD)                      \
  FIELD(CacheAddressParams, address)                             \
  FIELD(KVCodecPlane, keys)                                      \
  FIELD(KVCodecPlane, values)                                    \
  FIELD(uint32_t, heads)                                         \
  FIELD(uint32_t, flags)         /* KVCacheQuantizeFlags */      \
  FIELD(uint32_t, candidates)    /* divisors that turbo tries */ \
  FIELD(float, candidateSpacing) /* as a fraction of kTurboReach for the bits */
MNK_STRUCT(KVCacheQuantizeParams, MNK_KV_CACHE_QUANTIZE_PARAMS);
