// Where the tokens of a cache lie: what every op on a cache tells its kernel about it.
#pragma once
#include "Layout.h"

// Keys or values of the dense side, the source of a write. Strides count units: what the kernel loads at a time.
struct CacheSource {
  uint64_t sequenceStride;
  uint64_t tokenStride;
  uint64_t headStride;
};
MNK_SIZE(struct CacheSource, 24);

// A row is one head and token of the cache, whose strides count rows.
struct CacheAddressParams {
  struct CacheSource keys;
  struct CacheSource values;
  uint64_t sequenceStride;        // between sequences of the cache
  uint32_t sequence;              // where all tokens go, unless rows name sequences of their own
  uint32_t sequences;             // in the cache; a row beyond them is not stored
  uint32_t tokens;                // stored by this dispatch
  uint32_t sourceStart;           // first source token
  uint32_t sourceLength;          // source tokens of all sequences; an index that reaches it starts again at 0
  uint32_t sourceSequenceLength;  // source tokens of one sequence
  uint32_t slotStride;
  uint32_t cacheHeadStride;
  uint32_t capacity;
  uint32_t pinned;        // slots that are never reused: all of a linear cache
  uint32_t pinnedTokens;  // the first tokens, which go to pinned slots from pinnedSlot on
  uint32_t pinnedSlot;
  uint32_t skippedTokens;  // source tokens after those, too old for the ring
  uint32_t firstSlot;      // of the first token that is not pinned
};
MNK_SIZE(struct CacheAddressParams, 112);
