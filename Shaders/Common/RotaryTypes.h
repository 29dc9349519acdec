// The parameters of kernels that rotate.
#pragma once
#include "FunctionConstants.h"
#include "Layout.h"

enum MultiRoPESigns {
  kMultiRoPESignedPositions = 1,
  kMultiRoPESignedOffsets = 2,
};

// How far a pair turns from one position to the next: bits 2 to 63 are a fraction of a turn, in units of 2^-64. Whole
// turns are left out, because positions are whole numbers. Bits 0 and 1 are the axis whose position counts.
#define MNK_ROTARY_FREQUENCY(FIELD) \
  FIELD(uint32_t, low)              \
  FIELD(uint32_t, high)
MNK_STRUCT(RotaryFrequency, MNK_ROTARY_FREQUENCY);

// Queries or keys. Strides count elements.
#define MNK_MULTI_ROPE_OPERAND(FIELD) \
  FIELD(uint64_t, fromSequenceStride) \
  FIELD(uint64_t, fromTokenStride)    \
  FIELD(uint64_t, fromHeadStride)     \
  FIELD(uint64_t, intoSequenceStride) \
  FIELD(uint64_t, intoTokenStride)    \
  FIELD(uint64_t, intoHeadStride)     \
  FIELD(uint32_t, heads)              \
  FIELD(uint32_t, headGroups) /* threads that share the heads of a token */
MNK_STRUCT(MultiRoPEOperand, MNK_MULTI_ROPE_OPERAND);

// A unit is what one thread turns in a head: a pair, or four. Units from rotatedUnits on are copied.
#define MNK_MULTI_ROPE_PARAMS(FIELD)                                                                                  \
  FIELD(MultiRoPEOperand, queries)                                                                                    \
  FIELD(MultiRoPEOperand, keys)                                                                                       \
  FIELD(uint32_t, tokens)        /* of one sequence */                                                                \
  FIELD(uint32_t, totalTokens)   /* of all */                                                                         \
  FIELD(uint32_t, headsPerGroup) /* turned by one thread, by the same angles */                                       \
  FIELD(uint32_t, rotatedUnits)                                                                                       \
  FIELD(uint32_t, pairDistance)   /* between the elements of a pair that turns */                                     \
  FIELD(uint32_t, copiedOffset)   /* what is added to a pair's number for its first element where it does not turn */ \
  FIELD(uint32_t, copiedDistance) /* and from there to its second */                                                  \
  FIELD(uint32_t, axisStride)     /* in the array of positions; 0 where one axis serves for all */                    \
  FIELD(uint32_t, signs)          /* kMultiRoPESigned…, of those that have a sign */                                \
  FIELD(int32_t, firstPosition)   /* where there is no array of positions */                                          \
  FIELD(float, cosineScale)       /* the magnitude, for both; the sine's is negative where the rotation is undone */  \
  FIELD(float, sineScale)
MNK_STRUCT(MultiRoPEParams, MNK_MULTI_ROPE_PARAMS);
