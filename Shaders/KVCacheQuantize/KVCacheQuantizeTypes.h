// What KVCacheQuantize's host code and kernels agree on: buffer indices, parameters.
#pragma once
#include "CacheAddressTypes.h"
#include "KVCodecTypes.h"

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
};

enum KVCacheQuantizeFlags {
  kKVUnbiasedKeys = 1,
  kKVUnbiasedValues = 2,
  kKVPropagatesNonFinite = 4,
};

struct KVCacheQuantizeParams {
  struct CacheAddressParams address;
  struct KVCodecPlane keys;
  struct KVCodecPlane values;
  uint32_t heads;
  uint32_t flags;          // KVCacheQuantizeFlags
  uint32_t candidates;     // of turbo's search for a better size
  float candidateSpacing;  // in units of the reach of the bits
};
MNK_SIZE(struct KVCacheQuantizeParams, 176);
