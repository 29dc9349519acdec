// What KVCacheDequantize's host code and kernels agree on: buffer indices, parameters.
#pragma once
#include "CacheAddressTypes.h"
#include "KVCodecTypes.h"

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
MNK_SIZE(struct KVCacheDequantizeParams, 168);
