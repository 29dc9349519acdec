// What FlashDecode's and MergePartials' host code and kernels agree on: buffer indices, parameters, instances.
#pragma once
#include "../Common/FloatTypes.h"
#include "../Common/FunctionConstants.h"
#include "../Common/Layout.h"

// Instances of the vector kernel: key head dim, value head dim, and rows that a simdgroup computes. Up to 256, an
// instance also serves shorter dense vectors, zero-padded; the first instance that fits is the smallest. Only
// power-of-two instances serve quantized vectors, because each block of a shorter vector needs its own lanes.
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

// Instances for the Host device, in which few lanes share a vector. Other lengths are padded, and more rows are
// computed in several groups, because each instance takes a second to compile.
#define MNK_FLASH_FEW_LANES_INSTANCES(ROW) \
  ROW(32, 32, 1)                           \
  ROW(64, 64, 1)                           \
  ROW(64, 64, 4)                           \
  ROW(128, 128, 1)                         \
  ROW(128, 128, 4)                         \
  ROW(256, 256, 1)                         \
  ROW(256, 256, 4)                         \
  ROW(512, 512, 1)                         \
  ROW(576, 512, 1)

// Instances of the vector kernel for latent caches: the RoPE part of a key, the latent part, which is also the value,
// and the rows. The second list is for the Host device.
#define MNK_FLASH_LATENT_INSTANCES(ROW) ROW(64, 512, 1)
#define MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW) \
  ROW(64, 512, 1)                                 \
  ROW(64, 512, 4)

// Instances of the matrix kernel: head dims, the rows that a simdgroup computes together, the keys of its tiles. Codes
// of shorter vectors are padded.
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

// Instances of the prefill kernel: tile type, elements of a row per simdgroup, blocks of eight rows per simdgroup, and
// keys per tile. Tiles with few keys leave threadgroup memory for the partial products of simdgroups that share rows.
// With one block, a lane needs about 128 registers.
#define MNK_FLASH_PREFILL_INSTANCES(ROW) \
  ROW(f16, 64, 1, 32)                    \
  ROW(f16, 64, 2, 32)                    \
  ROW(f16, 80, 1, 16)                    \
  ROW(f16, 96, 1, 16)                    \
  ROW(f16, 128, 1, 16)                   \
  ROW(f16, 128, 1, 32)                   \
  ROW(f16, 128, 2, 16)                   \
  ROW(f16, 128, 2, 32)                   \
  ROW(f32, 64, 1, 16)                    \
  ROW(f32, 80, 1, 8)                     \
  ROW(f32, 96, 1, 8)                     \
  ROW(f32, 128, 1, 8)

// The same for latent caches: elements per simdgroup of the latent part, then of the RoPE part of a key.
#define MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW) \
  ROW(f16, 128, 16, 1, 16)                      \
  ROW(f16, 128, 16, 2, 16)                      \
  ROW(f32, 128, 16, 1, 8)

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
  kFlashDecodePartSums = 17,  // parts to merge
  kFlashDecodePartStats = 18,
  kFlashDecodeArrived = 19,  // counts the threadgroups that have stored their parts of the same rows
  kFlashDecodeRuns = 20,
};

// Rows whose parts the simdgroups of the matrix kernel merge at a time, and the padding in floats after each part that
// avoids bank conflicts.
#define kFlashDecodeMatrixPartRows(dim) ((dim) > 128 ? 2 : 4)
#define kFlashDecodeMatrixPadding 4
// Padded length in halves of a query that the matrix kernel prepares in threadgroup memory, and the bytes of all
// queries with two floats each, rounded up to the 512-byte unit in which tables are filled.
#define kFlashDecodeMatrixQueryStride(dim) ((dim) + 8)
#define kFlashDecodeMatrixQueryBytes(dim, rows) \
  (((rows) * (kFlashDecodeMatrixQueryStride(dim) * 2 + 8) + 511) / 512 * 512)

// Elements from a key of a prefill tile to the next, and from a pair of values to the next, padded so that lanes access
// different banks; and the padding of a row of queries or results.
#define kFlashPrefillKeyStride(dim) ((dim) + 16)
#define kFlashPrefillPairStride(dim) (2 * ((dim) + 8))
#define kFlashPrefillRowPadding 8
// Threadgroup memory holds a tile of keys and a tile of values, whose vectors have `dims` elements together; four
// floats for each key; codebooks; and, if simdgroups share rows, the partial products of each simdgroup: 8 * rowBlocks
// rows by `keys` keys.
#define kFlashPrefillTileBytes(size, dims, keys) ((keys) * (((dims) + 32) * (size) + 16))
#define kFlashPrefillPartBytes(rowBlocks, keys) ((rowBlocks) * (keys)*8 * 4)
// Rows of each threadgroup if `threadgroups` of them share `rows` rows as evenly as units of `unit` rows allow.
#define kFlashPrefillTileRows(rows, threadgroups, unit) \
  ((((rows) + (threadgroups)-1) / (threadgroups) + (unit)-1) / (unit) * (unit))

// Parameters for finishing a row.
#define MNK_FLASH_DECODE_FINISH(FIELD)            \
  FIELD(uint32_t, heads) /* of the queries */     \
  FIELD(uint32_t, kvHeads)                        \
  FIELD(uint32_t, headDim)  /* of values */       \
  FIELD(uint32_t, lanes)    /* that hold a row */ \
  FIELD(float, inverseRoot) /* of WalshHadamard.h */
MNK_STRUCT(FlashDecodeFinish, MNK_FLASH_DECODE_FINISH);

// One sequence of a dispatch. Keys are numbered from the oldest one in the cache. If rows see pinned positions in
// addition to a window, the numbering skips the positions in between.
#define MNK_FLASH_DECODE_SEQUENCE(FIELD)                                                                          \
  FIELD(uint32_t, sequence) /* of the cache */                                                                    \
  FIELD(uint32_t, hidden)   /* cached keys after the pinned ones that the numbering skips */                      \
  FIELD(int32_t, rowsEnd)   /* one past the position of its last row */                                           \
  FIELD(uint32_t, skipped)  /* positions after the pinned ones that the numbering skips: overwritten or hidden */ \
  FIELD(uint32_t, start)    /* slot minus key index, after the pinned ones */                                     \
  FIELD(uint32_t, firstKey) /* [firstKey, endKey): keys that some row of the dispatch sees */                     \
  FIELD(uint32_t, endKey)                                                                                         \
  FIELD(uint32_t, splitKeys) /* keys of a split */
MNK_STRUCT(FlashDecodeSequence, MNK_FLASH_DECODE_SEQUENCE);

// The rows of one sequence in a ragged dispatch. A row group is the rows of one threadgroup; groups are numbered across
// all sequences.
#define MNK_FLASH_DECODE_RUN(FIELD)                                                 \
  FIELD(uint32_t, firstGroup)                                                       \
  FIELD(uint32_t, rowGroups) /* for each head of the cache */                       \
  FIELD(uint32_t, firstRow)  /* of the dispatch, among the rows of all sequences */ \
  FIELD(uint32_t, rows)                                                             \
  FIELD(uint32_t, rowsLeft) /* from firstRow to the end of the sequence, including later dispatches */
MNK_STRUCT(FlashDecodeRun, MNK_FLASH_DECODE_RUN);

#define MNK_FLASH_DECODE_PARAMS(FIELD)                                                                \
  FIELD(FlashDecodeFinish, finish)                                                                    \
  FIELD(uint32_t, group)     /* query heads for each head of the cache */                             \
  FIELD(uint32_t, sequences) /* of this dispatch */                                                   \
  /* If all sequences have the same number of rows; ragged ones have a FlashDecodeRun each. */        \
  FIELD(uint32_t, rows)     /* of a sequence's queries in this dispatch */                            \
  FIELD(uint32_t, firstRow) /* of them, among all rows of the sequence */                             \
  FIELD(uint32_t, allRows)                                                                            \
  FIELD(uint32_t, firstSequence) /* of this dispatch, among those of the queries */                   \
  FIELD(uint32_t, rowGroups)     /* groups of rows per head of the cache */                           \
  FIELD(uint32_t, splits)                                                                             \
  FIELD(uint32_t, capacity)                                                                           \
  FIELD(uint32_t, pinned)                                                                             \
  FIELD(uint32_t, slotStride) /* in vectors */                                                        \
  FIELD(uint32_t, cacheHeadStride)                                                                    \
  FIELD(uint32_t, isCausal)                                                                           \
  FIELD(uint32_t, window)  /* 0: none */                                                              \
  FIELD(float, queryScale) /* factor for queries; includes log2(e) unless there is a softcap */       \
  FIELD(float, softcap)                                                                               \
  FIELD(float, keyInverseRoot) /* of WalshHadamard.h, for keys */                                     \
  FIELD(float, keyScaleFactor) /* of mlx1 */                                                          \
  FIELD(float, valueScaleFactor)                                                                      \
  FIELD(uint32_t, keyCodeBytes) /* of a vector, of elements or of codes */                            \
  FIELD(uint32_t, valueCodeBytes)                                                                     \
  FIELD(uint64_t, maskRowStride) /* in elements; 0 if the mask is broadcast along the axis */         \
  FIELD(uint64_t, maskHeadStride)                                                                     \
  FIELD(uint64_t, maskSequenceStride)                                                                 \
  FIELD(uint64_t, querySequenceStride) /* in elements, relative to the first query of the dispatch */ \
  FIELD(uint64_t, queryRowStride)                                                                     \
  FIELD(uint64_t, queryHeadStride)
MNK_STRUCT(FlashDecodeParams, MNK_FLASH_DECODE_PARAMS);

// A kernel that merges parts of rows: of splits, or of MergePartials.
#define MNK_FLASH_DECODE_REDUCE_PARAMS(FIELD)                         \
  FIELD(FlashDecodeFinish, finish)                                    \
  FIELD(uint32_t, parts)                                              \
  FIELD(uint32_t, rowStride)  /* between rows of parts, in vectors */ \
  FIELD(uint32_t, partStride) /* between parts of a row */
MNK_STRUCT(FlashDecodeReduceParams, MNK_FLASH_DECODE_REDUCE_PARAMS);
