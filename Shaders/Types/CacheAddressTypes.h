// Where the tokens of a cache lie: what every op on a cache tells its kernel about it.
#pragma once
#include "Layout.h"

// A row is one head and token, of the cache or of the dense tensor on the other side, the source of a write. Strides
// count rows.
struct CacheAddressParams {
  uint64_t sequenceStride;  // between sequences of the cache
  uint32_t sequence;        // where all tokens go, unless rows name sequences of their own
  uint32_t sequences;       // in the cache; a row beyond them is not stored
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
MNK_SIZE(struct CacheAddressParams, 72);
MNK_OFFSET(struct CacheAddressParams, sequenceStride, 0);
MNK_OFFSET(struct CacheAddressParams, sequence, 8);
MNK_OFFSET(struct CacheAddressParams, sequences, 12);
MNK_OFFSET(struct CacheAddressParams, tokens, 16);
MNK_OFFSET(struct CacheAddressParams, sourceTokenStride, 20);
MNK_OFFSET(struct CacheAddressParams, sourceHeadStride, 24);
MNK_OFFSET(struct CacheAddressParams, sourceStart, 28);
MNK_OFFSET(struct CacheAddressParams, sourceLength, 32);
MNK_OFFSET(struct CacheAddressParams, slotStride, 36);
MNK_OFFSET(struct CacheAddressParams, cacheHeadStride, 40);
MNK_OFFSET(struct CacheAddressParams, capacity, 44);
MNK_OFFSET(struct CacheAddressParams, pinned, 48);
MNK_OFFSET(struct CacheAddressParams, isRing, 52);
MNK_OFFSET(struct CacheAddressParams, pinnedTokens, 56);
MNK_OFFSET(struct CacheAddressParams, pinnedSlot, 60);
MNK_OFFSET(struct CacheAddressParams, skippedTokens, 64);
MNK_OFFSET(struct CacheAddressParams, firstSlot, 68);
