// Parameters of the kernels that apply RoPE.
#pragma once
#include "FunctionConstants.h"
#include "Layout.h"

enum MultiRoPESigns {
  kMultiRoPESignedPositions = 1,
  kMultiRoPESignedOffsets = 2,
};

// The rotation of a pair per position. Bits 2 to 63 are the fraction of a turn, in units of 2^-64; whole turns drop out
// because positions are integers. Bits 0 and 1 select the axis whose position is used.
#define MNK_ROTARY_FREQUENCY(FIELD) \
  FIELD(uint32_t, low)              \
  FIELD(uint32_t, high)
MNK_STRUCT(RotaryFrequency, MNK_ROTARY_FREQUENCY);

// Queries or keys. Strides are in elements.
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

// A unit is what one thread rotates in a head: one pair or four. Units from rotatedUnits on are copied.
#define MNK_MULTI_ROPE_PARAMS(FIELD)                                                                    \
  FIELD(MultiRoPEOperand, queries)                                                                      \
  FIELD(MultiRoPEOperand, keys)                                                                         \
  FIELD(uint32_t, tokens)        /* of one sequence */                                                  \
  FIELD(uint32_t, totalTokens)   /* of all */                                                           \
  FIELD(uint32_t, headsPerGroup) /* rotated by one thread with the same angles */                       \
  FIELD(uint32_t, rotatedUnits)                                                                         \
  FIELD(uint32_t, pairDistance)   /* between the elements of a rotated pair */                          \
  FIELD(uint32_t, copiedOffset)   /* offset from a pair's index to its first element if it is copied */ \
  FIELD(uint32_t, copiedDistance) /* and from the first to the second element */                        \
  FIELD(uint32_t, axisStride)     /* in the position array; 0 if all axes share one */                  \
  FIELD(uint32_t, signs)          /* MultiRoPESigns: which arrays are signed */                         \
  FIELD(int32_t, firstPosition)   /* used if there is no position array */                              \
  FIELD(float, cosineScale)       /* magnitude; sineScale is its negative for the inverse rotation */   \
  FIELD(float, sineScale)
MNK_STRUCT(MultiRoPEParams, MNK_MULTI_ROPE_PARAMS);
