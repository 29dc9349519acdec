// Where a token of a cache write comes from and where it goes.
#pragma once
#include "CacheAddressTypes.h"
#include "FunctionConstants.h"
#include "MetalCompat.h"

pipeline_constant(bool, kvHasValues, kKVCacheHasValues);
pipeline_constant(bool, kvHasRows, kKVCacheHasRows);
pipeline_constant(bool, kvRowsMayRepeat, kKVCacheRowsMayRepeat);

// A source token and its cache row. `isStored` is false for a token that is not stored.
struct CacheAddress {
  uint sourceToken;
  ulong cacheRow;
  bool isStored;
};

inline uint sourceToken(constant CacheAddressParams& p, uint token) {
  const uint index = p.sourceStart + token;
  return index >= p.sourceLength ? index - p.sourceLength : index;
}

// The first unit of a vector of keys or values. Only tokens after the first sequence need a division.
inline ulong sourceUnit(constant CacheAddressParams& p, constant CacheSource& source, uint head, uint token) {
  ulong first = ulong(head) * source.headStride;
  if (token >= p.sourceSequenceLength) {
    const uint sequence = token / p.sourceSequenceLength;
    first += ulong(sequence) * source.sequenceStride;
    token -= sequence * p.sourceSequenceLength;
  }
  return first + ulong(token) * source.tokenStride;
}

inline ulong cacheRow(constant CacheAddressParams& p, uint sequence, uint head, uint slot) {
  return ulong(sequence) * p.sequenceStride + ulong(head) * p.cacheHeadStride + ulong(slot) * p.slotStride;
}

// The slot of a position, or `capacity` if a linear cache has no slot for it.
inline uint slotOfPosition(constant CacheAddressParams& p, uint position) {
  if (position < p.pinned || p.pinned == p.capacity) {
    return min(position, p.capacity);
  }
  return p.pinned + (position - p.pinned) % (p.capacity - p.pinned);
}

// Token t of consecutive positions. The host has mapped positions to slots, so the kernel needs no division.
inline CacheAddress addressInRun(constant CacheAddressParams& p, uint head, uint t) {
  const bool isPinned = t < p.pinnedTokens;
  uint slot = isPinned ? p.pinnedSlot + t : p.firstSlot + (t - p.pinnedTokens);
  if (slot >= p.capacity) {
    slot -= p.capacity - p.pinned;
  }
  const uint token = isPinned ? t : t + p.skippedTokens;
  return CacheAddress{sourceToken(p, token), cacheRow(p, p.sequence, head, slot), true};
}

// Token t with its own sequence and position. A row whose sequence or position has no slot is not stored. If rows may
// repeat a slot, only the last row with that slot is stored.
inline CacheAddress addressOfRow(
    constant CacheAddressParams& p, device const uint* sequences, device const uint* positions, uint head, uint t) {
  const uint sequence = sequences[t];
  const uint slot = slotOfPosition(p, positions[t]);
  bool isStored = sequence < p.sequences && slot < p.capacity;
  if (kvRowsMayRepeat) {
    for (uint later = t + 1; later < p.tokens; ++later) {
      isStored = isStored && !(sequences[later] == sequence && slotOfPosition(p, positions[later]) == slot);
    }
  }
  return CacheAddress{sourceToken(p, t), cacheRow(p, sequence, head, slot), isStored};
}

// Token t in either mode. `sequences` and `positions` are bound only if kvHasRows.
inline CacheAddress cacheAddress(
    constant CacheAddressParams& p, device const uint* sequences, device const uint* positions, uint head, uint t) {
  if (kvHasRows) {
    return addressOfRow(p, sequences, positions, head, t);
  }
  return addressInRun(p, head, t);
}
