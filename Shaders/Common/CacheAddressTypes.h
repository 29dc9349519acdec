// Addresses of tokens in a cache: parameters that all cache ops pass to their kernels.
#pragma once
#include "Layout.h"

// The source of keys or of values of a write. Strides are in units, the elements that the kernel loads at once.
#define MNK_CACHE_SOURCE(FIELD)   \
  FIELD(uint64_t, sequenceStride) \
  FIELD(uint64_t, tokenStride)    \
  FIELD(uint64_t, headStride)
MNK_STRUCT(CacheSource, MNK_CACHE_SOURCE);

// A row is one head of one token in the cache. Strides of the cache are in rows.
#define MNK_CACHE_ADDRESS_PARAMS(FIELD)                                                                       \
  FIELD(CacheSource, keys)                                                                                    \
  FIELD(CacheSource, values)                                                                                  \
  FIELD(uint64_t, sequenceStride)       /* between sequences of the cache */                                  \
  FIELD(uint32_t, sequence)             /* destination of all tokens, unless each row has its own sequence */ \
  FIELD(uint32_t, sequences)            /* in the cache; a row beyond them is not stored */                   \
  FIELD(uint32_t, tokens)               /* stored by this dispatch */                                         \
  FIELD(uint32_t, sourceStart)          /* first source token */                                              \
  FIELD(uint32_t, sourceLength)         /* source tokens of all sequences; indices wrap around at it */       \
  FIELD(uint32_t, sourceSequenceLength) /* source tokens of one sequence */                                   \
  FIELD(uint32_t, slotStride)                                                                                 \
  FIELD(uint32_t, cacheHeadStride)                                                                            \
  FIELD(uint32_t, capacity)                                                                                   \
  FIELD(uint32_t, pinned)       /* slots that are never overwritten; capacity for a linear cache */           \
  FIELD(uint32_t, pinnedTokens) /* leading tokens that go to pinned slots, from pinnedSlot on */              \
  FIELD(uint32_t, pinnedSlot)                                                                                 \
  FIELD(uint32_t, skippedTokens) /* source tokens after those that the ring would overwrite at once */        \
  FIELD(uint32_t, firstSlot)     /* of the first token that is not pinned */
MNK_STRUCT(CacheAddressParams, MNK_CACHE_ADDRESS_PARAMS);
