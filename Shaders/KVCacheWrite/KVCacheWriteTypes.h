// What KVCacheWrite's host code and kernels agree on: exported names, buffer indices, parameters.
#pragma once
#include "../Common/CacheAddressTypes.h"
#include "../Common/FunctionConstants.h"
#include "../Common/Layout.h"

// Conversions, a row for each (source, cache) pair: kvCacheConvert_f32_f16 …
#define MNK_KV_CACHE_CONVERSIONS(ROW) \
  ROW(f32, f16)                       \
  ROW(f32, bf16)                      \
  ROW(f16, f32)                       \
  ROW(f16, bf16)                      \
  ROW(bf16, f32)                      \
  ROW(bf16, f16)

// Copies between equal types, one entry per number of bytes that a thread copies: kvCacheMove_16 …
#define MNK_KV_CACHE_MOVES(ROW) \
  ROW(16, uint4)                \
  ROW(4, uint)                  \
  ROW(2, ushort)                \
  ROW(1, uchar)

enum KVCacheWriteBuffer {
  kKVCacheWriteParams = 0,
  kKVCacheWriteKeys = 1,
  kKVCacheWriteValues = 2,
  kKVCacheWriteKeyCache = 3,
  kKVCacheWriteValueCache = 4,
  kKVCacheWriteSequences = 5,
  kKVCacheWritePositions = 6,
};

// A unit is what one thread stores: an element, four elements, or the bytes of a move.
#define MNK_KV_CACHE_WRITE_PARAMS(FIELD)             \
  FIELD(CacheAddressParams, address)                 \
  FIELD(uint32_t, keyUnits)   /* in a row of keys */ \
  FIELD(uint32_t, valueUnits) /* in a row of values */
MNK_STRUCT(KVCacheWriteParams, MNK_KV_CACHE_WRITE_PARAMS);
