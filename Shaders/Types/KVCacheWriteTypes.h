// What KVCacheWrite's host code and kernels agree on: exported names, buffer indices, parameters.
#pragma once
#include "FunctionConstants.h"
#include "Layout.h"

// Conversions, a row for each (source, cache) pair: kvCacheConvert_f32_f16 …
#define MNK_KV_CACHE_CONVERSIONS(ROW) \
  ROW(f32, f16)                       \
  ROW(f32, bf16)                      \
  ROW(f16, f32)                       \
  ROW(f16, bf16)                      \
  ROW(bf16, f32)                      \
  ROW(bf16, f16)

// Moves between equal dtypes, a row for each unit of bytes that a thread moves: kvCacheMove_16 …
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

// A row is the headDim elements of one head and token. A unit is what one thread stores: an element, four elements,
// or the bytes of a move. Strides count rows.
struct KVCacheWriteParams {
  uint64_t sequenceStride;  // between sequences of the cache
  uint32_t sequence;        // where all tokens go, unless rows name sequences of their own
  uint32_t sequences;       // in the cache; a row beyond them is not stored
  uint32_t keyUnits;        // in a row of keys
  uint32_t valueUnits;      // in a row of values
  uint32_t tokens;          // stored by this dispatch
  uint32_t sourceTokenStride;
  uint32_t sourceHeadStride;
  uint32_t sourceStart;   // first source token
  uint32_t sourceLength;  // source tokens; an index that reaches it starts again at 0
  uint32_t slotStride;
  uint32_t cacheHeadStride;
  uint32_t capacity;
  uint32_t pinned;  // slots that a ring never reuses
  uint32_t isRing;
  uint32_t pinnedTokens;  // the first tokens, which go to pinned slots from pinnedSlot on
  uint32_t pinnedSlot;
  uint32_t skippedTokens;  // source tokens after those, too old for the ring
  uint32_t firstSlot;      // of the first token that is not pinned
};
MNK_SIZE(struct KVCacheWriteParams, 80);
MNK_OFFSET(struct KVCacheWriteParams, sequenceStride, 0);
MNK_OFFSET(struct KVCacheWriteParams, sequence, 8);
MNK_OFFSET(struct KVCacheWriteParams, sequences, 12);
MNK_OFFSET(struct KVCacheWriteParams, keyUnits, 16);
MNK_OFFSET(struct KVCacheWriteParams, valueUnits, 20);
MNK_OFFSET(struct KVCacheWriteParams, tokens, 24);
MNK_OFFSET(struct KVCacheWriteParams, sourceTokenStride, 28);
MNK_OFFSET(struct KVCacheWriteParams, sourceHeadStride, 32);
MNK_OFFSET(struct KVCacheWriteParams, sourceStart, 36);
MNK_OFFSET(struct KVCacheWriteParams, sourceLength, 40);
MNK_OFFSET(struct KVCacheWriteParams, slotStride, 44);
MNK_OFFSET(struct KVCacheWriteParams, cacheHeadStride, 48);
MNK_OFFSET(struct KVCacheWriteParams, capacity, 52);
MNK_OFFSET(struct KVCacheWriteParams, pinned, 56);
MNK_OFFSET(struct KVCacheWriteParams, isRing, 60);
MNK_OFFSET(struct KVCacheWriteParams, pinnedTokens, 64);
MNK_OFFSET(struct KVCacheWriteParams, pinnedSlot, 68);
MNK_OFFSET(struct KVCacheWriteParams, skippedTokens, 72);
MNK_OFFSET(struct KVCacheWriteParams, firstSlot, 76);
