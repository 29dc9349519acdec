// What RotaryAppend's host code and kernel agree on: buffer indices, parameters.
#pragma once
#include "../Common/CacheAddressTypes.h"
#include "../Common/RotaryTypes.h"

enum RotaryAppendBuffer {
  kRotaryAppendParams = 0,
  kRotaryAppendFrequencies = 1,
  kRotaryAppendQueries = 2,
  kRotaryAppendRotatedQueries = 3,
  kRotaryAppendKeys = 4,
  kRotaryAppendValues = 5,
  kRotaryAppendKeyCache = 6,
  kRotaryAppendValueCache = 7,
  kRotaryAppendSequences = 8,
  kRotaryAppendSlots = 9,
  kRotaryAppendPositions = 10,
  kRotaryAppendOffsets = 11,
};

// Strides of sources are in elements. Only the head counts of `rotation.keys` are used; `address` locates the key
// vectors.
#define MNK_ROTARY_APPEND_PARAMS(FIELD)                            \
  FIELD(MultiRoPEParams, rotation)                                 \
  FIELD(CacheAddressParams, address)                               \
  FIELD(uint32_t, keyUnits)   /* in a vector of queries or keys */ \
  FIELD(uint32_t, valueUnits) /* in a vector of values */          \
  FIELD(uint32_t, keyDim)                                          \
  FIELD(uint32_t, valueDim)
MNK_STRUCT(RotaryAppendParams, MNK_ROTARY_APPEND_PARAMS);
