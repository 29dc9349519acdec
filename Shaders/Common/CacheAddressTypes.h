// Where the tokens of a cache lie: what every op on a cache tells its kernel about it.
#pragma once
#include "Layout.h"

// Keys or values of the dense side, the source of a write. Strides count units: what the kernel loads at a time.
#define MNK_CACHE_SOURCE(FIELD)   \
  FIELD(uint64_t, sequenceStride) \
  FIELD(uint64_t, tokenStride)    \
  FIELD(uint64_t, headStride)
MNK_STRUCT(CacheSource, MNK_CACHE_SOURCE);

// A row is one head and token of the cache, whose strides count rows.
#define MNK_CACHE_ADDRESS_PARAMS(FIELD)                                                                            \
  FIELD(CacheSource, keys)                                                                                         \
  FIELD(CacheSource, values)                                                                                       \
  FIELD(uint64_t, sequenceStride) /* between sequences of the cache */                                             \
  FIELD(uint32_t, sequence)       /* where all tokens go, unless rows name sequences of their own */               \
  FIELD(uint32_t, sequences)      /* in the cache; a row beyond them is not stored */                              \
  FIELD(uint32_t, tokens)         /* stored by this dispatch */                                                    \
  FIELD(uint32_t, sourceStart)    /* first source token */                                                         \
  FIELD(uint32_t, sourceLength)   /* source tokens of all sequences; an index that reaches it starts again at 0 */ \
  FIELD(uint32_t, sourceSequenceLength) /* source tokens of one sequence */                                        \
  FIELD(uint32_t, slotStride)                                                                                      \
  FIELD(uint32_t, cacheHeadStride)                                                                                 \
  FIELD(uint32_t, capacity)                                                                                        \
  FIELD(uint32_t, pinned)       /* slots that are never reused: all of a linear cache */                           \
  FIELD(uint32_t, pinnedTokens) /* the first tokens, which go to pinned slots from pinnedSlot on */                \
  FIELD(uint32_t, pinnedSlot)                                                                                      \
  FIELD(uint32_t, skippedTokens) /* source tokens after those, too old for the ring */                             \
  FIELD(uint32_t, firstSlot)     /* of the first token that is not pinned */
MNK_STRUCT(CacheAddressParams, MNK_CACHE_ADDRESS_PARAMS);
