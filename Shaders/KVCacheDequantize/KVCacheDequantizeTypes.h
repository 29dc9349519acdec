// What KVCacheDequantize's host code and kernels agree on: buffer indices, parameters.
#pragma once
#include "../Common/CacheAddressTypes.h"
#include "../Common/KVCodecTypes.h"

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

#define MNK_KV_CACHE_DEQUANTIZE_PARAMS(FIELD) \
  FIELD(CacheAddressParams, address)          \
  FIELD(KVCodecPlane, keys)                   \
  FIELD(KVCodecPlane, values)                 \
  FIELD(uint32_t, heads)                      \
  FIELD(uint32_t, isOriginal) /* else the rotated domain */
MNK_STRUCT(KVCacheDequantizeParams, MNK_KV_CACHE_DEQUANTIZE_PARAMS);
