// What MultiRoPE's host code and kernels agree on: exported names, buffer indices, parameters.
#pragma once
#include "FunctionConstants.h"
#include "Layout.h"

// A row for each (from, into) pair: multiRoPE_f32_f16 …
#define MNK_MULTI_ROPE_DTYPES(ROW) \
  ROW(f32, f32)                    \
  ROW(f32, f16)                    \
  ROW(f32, bf16)                   \
  ROW(f16, f32)                    \
  ROW(f16, f16)                    \
  ROW(f16, bf16)                   \
  ROW(bf16, f32)                   \
  ROW(bf16, f16)                   \
  ROW(bf16, bf16)

enum MultiRoPEBuffer {
  kMultiRoPEParams = 0,
  kMultiRoPEFrequencies = 1,
  kMultiRoPEQueries = 2,
  kMultiRoPERotatedQueries = 3,
  kMultiRoPEKeys = 4,
  kMultiRoPERotatedKeys = 5,
  kMultiRoPEPositions = 6,
  kMultiRoPEOffsets = 7,
};

enum MultiRoPESigns {
  kMultiRoPESignedPositions = 1,
  kMultiRoPESignedOffsets = 2,
};

// How far a pair turns from one position to the next: bits 2 to 63 are a fraction of a turn, in units of 2^-64. Whole
// turns are left out, because positions are whole numbers. Bits 0 and 1 are the axis whose position counts.
struct RotaryFrequency {
  uint32_t low;
  uint32_t high;
};
MNK_SIZE(struct RotaryFrequency, 8);

// Queries or keys. Strides count elements.
struct MultiRoPEOperand {
  uint64_t fromSequenceStride;
  uint64_t fromTokenStride;
  uint64_t fromHeadStride;
  uint64_t intoSequenceStride;
  uint64_t intoTokenStride;
  uint64_t intoHeadStride;
  uint32_t heads;
  uint32_t headGroups;  // threads that share the heads of a token
};
MNK_SIZE(struct MultiRoPEOperand, 56);

// A unit is what one thread turns in a head: a pair, or four. Units from rotatedUnits on are copied.
struct MultiRoPEParams {
  struct MultiRoPEOperand queries;
  struct MultiRoPEOperand keys;
  uint32_t tokens;         // of one sequence
  uint32_t totalTokens;    // of all
  uint32_t headsPerGroup;  // turned by one thread, by the same angles
  uint32_t rotatedUnits;
  uint32_t pairDistance;    // between the elements of a pair that turns
  uint32_t copiedOffset;    // what is added to a pair's number for its first element where it does not turn
  uint32_t copiedDistance;  // and from there to its second
  uint32_t axisStride;      // in the array of positions; 0 where one axis stands for all
  uint32_t signs;           // kMultiRoPESigned…, of those that have a sign
  int32_t firstPosition;    // where there is no array of positions
  float cosineScale;        // the magnitude, for both; the sine's is negative where the rotation is undone
  float sineScale;
};
MNK_SIZE(struct MultiRoPEParams, 160);
