// What FlashDecode's and MergePartials' host code and kernels agree on: buffer indices, parameters, instances.
#pragma once
#include "FloatTypes.h"
#include "FunctionConstants.h"
#include "Layout.h"

// Instances of the vector kernel: head dims of keys and values, and the rows that a simdgroup computes together. Up to
// 256 an instance also serves shorter vectors of elements; the smallest that does is the first.
#define MNK_FLASH_VECTOR_INSTANCES(ROW) \
  ROW(32, 32, 1)                        \
  ROW(32, 32, 4)                        \
  ROW(64, 64, 1)                        \
  ROW(64, 64, 4)                        \
  ROW(64, 64, 8)                        \
  ROW(80, 80, 1)                        \
  ROW(80, 80, 4)                        \
  ROW(96, 96, 1)                        \
  ROW(96, 96, 4)                        \
  ROW(128, 128, 1)                      \
  ROW(128, 128, 4)                      \
  ROW(128, 128, 8)                      \
  ROW(192, 128, 1)                      \
  ROW(192, 128, 4)                      \
  ROW(192, 192, 1)                      \
  ROW(192, 192, 4)                      \
  ROW(256, 256, 1)                      \
  ROW(256, 256, 4)                      \
  ROW(512, 512, 1)                      \
  ROW(512, 512, 2)                      \
  ROW(576, 512, 1)

// Instances of the matrix kernel: head dims, the rows that a simdgroup computes together, the keys of its tiles.
#define MNK_FLASH_MATRIX_INSTANCES(ROW) \
  ROW(64, 8, 16)                        \
  ROW(64, 8, 32)                        \
  ROW(64, 16, 32)                       \
  ROW(128, 8, 8)                        \
  ROW(128, 8, 16)                       \
  ROW(128, 8, 32)                       \
  ROW(128, 16, 16)                      \
  ROW(128, 16, 32)                      \
  ROW(256, 8, 8)                        \
  ROW(256, 8, 16)

// Instances of the kernels that finish rows: float4s that a lane holds of a row.
#define MNK_FLASH_REDUCE_INSTANCES(ROW) \
  ROW(1)                                \
  ROW(2)                                \
  ROW(4)

enum FlashDecodeBuffer {
  kFlashDecodeParams = 0,
  kFlashDecodeSequences = 1,
  kFlashDecodeQueries = 2,
  kFlashDecodeKeys = 3,
  kFlashDecodeValues = 4,
  kFlashDecodeKeyScales = 5,
  kFlashDecodeValueScales = 6,
  kFlashDecodeKeyMeans = 7,
  kFlashDecodeValueMeans = 8,
  kFlashDecodeChannelScales = 9,
  kFlashDecodeMask = 10,
  kFlashDecodeSlopes = 11,
  kFlashDecodeSinks = 12,
  kFlashDecodeInto = 13,
  kFlashDecodeLogSumExp = 14,
  kFlashDecodeSums = 15,  // of splits, or partials that the caller asked for
  kFlashDecodeStats = 16,
  kFlashDecodePartSums = 17,  // what is merged
  kFlashDecodePartStats = 18,
  kFlashDecodeArrived = 19,  // how many threadgroups have stored their parts of the same rows
};

// Rows whose parts the simdgroups of the matrix kernel merge at a time, and floats after each part, so that those of
// neighboring lanes lie in other banks.
#define kFlashDecodeMatrixPartRows(dim) ((dim) > 128 ? 2 : 4)
#define kFlashDecodeMatrixPadding 4
// Halves of a query that the matrix kernel prepares in threadgroup memory, padded likewise; and bytes of all queries,
// with two floats each, in units of which it fills its tables.
#define kFlashDecodeMatrixQueryStride(dim) ((dim) + 8)
#define kFlashDecodeMatrixQueryBytes(dim, rows) \
  (((rows) * (kFlashDecodeMatrixQueryStride(dim) * 2 + 8) + 511) / 512 * 512)

// Threadgroup memory before the parts that the last threadgroup merges: its count.
#define kFlashDecodeCountBytes 16

// What a row becomes in the end.
struct FlashDecodeFinish {
  uint32_t heads;  // of the queries
  uint32_t kvHeads;
  uint32_t headDim;   // of values
  uint32_t lanes;     // that hold a row
  float inverseRoot;  // 1 / sqrt(headDim)
};
MNK_SIZE(struct FlashDecodeFinish, 20);

// One sequence, of those that a dispatch attends to. Keys are counted from the oldest that the cache holds; where rows
// see pinned positions beside a window, those between them are not counted.
struct FlashDecodeSequence {
  uint32_t sequence;  // of the cache
  uint32_t hidden;    // keys after the pinned ones that the cache holds and that are not counted
  uint32_t length;    // positions
  uint32_t skipped;   // positions after the pinned ones that are not counted: overwritten in a ring, or hidden
  uint32_t start;     // what is added to a key's index for its slot, after the pinned ones
  uint32_t firstKey;  // keys that any row of the dispatch sees
  uint32_t endKey;
  uint32_t splitKeys;  // keys of a split
};
MNK_SIZE(struct FlashDecodeSequence, 32);

struct FlashDecodeParams {
  struct FlashDecodeFinish finish;
  uint32_t group;     // query heads for each head of the cache
  uint32_t rows;      // of a sequence's queries in this dispatch
  uint32_t firstRow;  // of them, among all rows of the sequence
  uint32_t allRows;
  uint32_t firstSequence;  // of this dispatch, among those of the queries
  uint32_t rowGroups;      // simdgroups' worth of rows for each head of the cache
  uint32_t splits;
  uint32_t capacity;
  uint32_t pinned;
  uint32_t slotStride;  // in vectors
  uint32_t cacheHeadStride;
  uint32_t isCausal;
  uint32_t window;   // 0: none
  float queryScale;  // what queries are multiplied by: log2(e) is in it unless there is a softcap
  float softcap;
  float keyInverseRoot;  // 1 / sqrt(headDim) of keys
  float keyScaleFactor;  // of mlx1
  float valueScaleFactor;
  uint32_t keyCodeBytes;  // of a vector, of elements or of codes
  uint32_t valueCodeBytes;
  uint32_t maskRowStride;  // in elements; 0 where one serves all
  uint64_t maskHeadStride;
  uint64_t maskSequenceStride;
  uint64_t querySequenceStride;  // in elements, from the first of the dispatch on
  uint64_t queryRowStride;
  uint64_t queryHeadStride;
};
MNK_SIZE(struct FlashDecodeParams, 144);

// A kernel that merges parts of rows: of splits, or of MergePartials.
struct FlashDecodeReduceParams {
  struct FlashDecodeFinish finish;
  uint32_t parts;
  uint32_t rowStride;   // between rows of parts, in vectors
  uint32_t partStride;  // between parts of a row
};
MNK_SIZE(struct FlashDecodeReduceParams, 32);
