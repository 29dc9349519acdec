// What the host code and kernels of quantized caches agree on.
#pragma once
#include "CacheAddressTypes.h"
#include "FloatTypes.h"
#include "FunctionConstants.h"
#include "Layout.h"

// A row for each number of float4 that a lane holds: four elements at least, and a 32nd of the longest vector.
#define MNK_VECTOR_CHUNKS(ROW) \
  ROW(1)                       \
  ROW(2)                       \
  ROW(4)                       \
  ROW(8)                       \
  ROW(16)                      \
  ROW(32)

// Keys or values of a quantized cache.
struct KVCodecPlane {
  uint32_t headDim;
  uint32_t lanes;       // that share a vector
  uint32_t simdgroups;  // that share the heads of a token
  uint32_t codeBytes;   // of a vector
  float inverseRoot;    // 1 / sqrt(headDim)
  float scaleFactor;    // of mlx1
};
MNK_SIZE(struct KVCodecPlane, 24);
MNK_OFFSET(struct KVCodecPlane, headDim, 0);
MNK_OFFSET(struct KVCodecPlane, lanes, 4);
MNK_OFFSET(struct KVCodecPlane, simdgroups, 8);
MNK_OFFSET(struct KVCodecPlane, codeBytes, 12);
MNK_OFFSET(struct KVCodecPlane, inverseRoot, 16);
MNK_OFFSET(struct KVCodecPlane, scaleFactor, 20);

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
MNK_SIZE(struct KVCacheQuantizeParams, 136);
MNK_OFFSET(struct KVCacheQuantizeParams, address, 0);
MNK_OFFSET(struct KVCacheQuantizeParams, keys, 72);
MNK_OFFSET(struct KVCacheQuantizeParams, values, 96);
MNK_OFFSET(struct KVCacheQuantizeParams, heads, 120);
MNK_OFFSET(struct KVCacheQuantizeParams, flags, 124);
MNK_OFFSET(struct KVCacheQuantizeParams, candidates, 128);
MNK_OFFSET(struct KVCacheQuantizeParams, candidateSpacing, 132);

enum KVCacheDequantizeBuffer {
  kKVCacheDequantizeParams = 0,
  kKVCacheDequantizeKeys = 1,
  kKVCacheDequantizeValues = 2,
  kKVCacheDequantizeKeyCodes = 3,
  kKVCacheDequantizeValueCodes = 4,
  kKVCacheDequantizeKeyScales = 5,
  kKVCacheDequantizeValueScales = 6,
  kKVCacheDequantizeKeyMeans = 7,
  kKVCacheDequantizeValueMeans = 8,
  kKVCacheDequantizeChannelScales = 9,
};

struct KVCacheDequantizeParams {
  struct CacheAddressParams address;
  struct KVCodecPlane keys;
  struct KVCodecPlane values;
  uint32_t heads;
  uint32_t isOriginal;  // else the rotated domain
};
MNK_SIZE(struct KVCacheDequantizeParams, 128);
MNK_OFFSET(struct KVCacheDequantizeParams, address, 0);
MNK_OFFSET(struct KVCacheDequantizeParams, keys, 72);
MNK_OFFSET(struct KVCacheDequantizeParams, values, 96);
MNK_OFFSET(struct KVCacheDequantizeParams, heads, 120);
MNK_OFFSET(struct KVCacheDequantizeParams, isOriginal, 124);

enum HadamardBuffer {
  kHadamardParams = 0,
  kHadamardFrom = 1,
  kHadamardInto = 2,
};

enum HadamardSigns {
  kHadamardNoSigns = 0,
  kHadamardTurboSigns = 1,
  kHadamardMlx1Signs = 2,
};

struct HadamardParams {
  uint32_t length;
  uint32_t lanes;  // that share a vector
  uint32_t vectors;
  uint32_t signs;  // HadamardSigns
  uint32_t isInverse;
  float inverseRoot;  // 1 / sqrt(length)
};
MNK_SIZE(struct HadamardParams, 24);
MNK_OFFSET(struct HadamardParams, length, 0);
MNK_OFFSET(struct HadamardParams, lanes, 4);
MNK_OFFSET(struct HadamardParams, vectors, 8);
MNK_OFFSET(struct HadamardParams, signs, 12);
MNK_OFFSET(struct HadamardParams, isInverse, 16);
MNK_OFFSET(struct HadamardParams, inverseRoot, 20);
