// What FlashDecode's and MergePartials' host code and kernels agree on: buffer indices, parameters, instances.
#pragma once
#include "../Common/FloatTypes.h"
#include "../Common/FunctionConstants.h"
#include "../Common/Layout.h"

// Instances of the vector kernel: head dims of keys and values, and the rows that a simdgroup computes together. Up to
// 256 an instance also serves shorter vectors of elements; the smallest that does is the first. Codes are served by
// powers of two alone, in which each block of a shorter vector has lanes of its own.
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

// Those in which few lanes share a vector, for the Host device: other lengths are padded, and more rows are computed
// one group after another, because each instance takes a second to compile.
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

// Instances of the vector kernel for latent caches: the rest of a key, the latent part, which is its value too, and the
// rows. The second list is for the Host device.
#define MNK_FLASH_LATENT_INSTANCES(ROW) ROW(64, 512, 1)
#define MNK_FLASH_LATENT_FEW_LANES_INSTANCES(ROW) \
  ROW(64, 512, 1)                                 \
  ROW(64, 512, 4)

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

// Instances of the prefill kernel: the type of its tiles, the elements of a row that a simdgroup has, the rows that it
// computes together in eights, the keys of a tile. Tiles of a type take about as many bytes whatever the length.
#define MNK_FLASH_PREFILL_INSTANCES(ROW) \
  ROW(f16, 64, 2, 32)                    \
  ROW(f16, 80, 2, 16)                    \
  ROW(f16, 96, 2, 16)                    \
  ROW(f16, 128, 2, 16)                   \
  ROW(f32, 64, 1, 16)                    \
  ROW(f32, 80, 1, 8)                     \
  ROW(f32, 96, 1, 8)                     \
  ROW(f32, 128, 1, 8)

// The same for latent caches: elements of the latent part that a simdgroup has, then those of the rest of a key.
#define MNK_FLASH_LATENT_PREFILL_INSTANCES(ROW) \
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
  kFlashDecodePartSums = 17,  // what is merged
  kFlashDecodePartStats = 18,
  kFlashDecodeArrived = 19,  // how many threadgroups have stored their parts of the same rows
  kFlashDecodeRuns = 20,
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

// Elements after each vector of a tile of the prefill kernel, so that those of neighboring lanes lie in other banks. In
// threadgroup memory it has a tile of keys and one of values, whose vectors together have `dims` elements; two floats
// for each of their vectors; a number for each simdgroup; levels of codes; and products of simdgroups that share rows,
// eight rows of them for each of its rows' eights.
#define kFlashPrefillPadding 8
#define kFlashPrefillMaxSimdgroups 32
#define kFlashPrefillTileBytes(size, dims, keys) \
  ((keys) * (((dims) + 2 * kFlashPrefillPadding) * (size) + 16) + 4 * kFlashPrefillMaxSimdgroups)
#define kFlashPrefillPartBytes(rowBlocks, keys) ((rowBlocks) * (keys)*8 * 4)
// Rows of each threadgroup if `threadgroups` of them share `rows` rows as evenly as units of `unit` rows allow.
#define kFlashPrefillTileRows(rows, threadgroups, unit) \
  ((((rows) + (threadgroups)-1) / (threadgroups) + (unit)-1) / (unit) * (unit))

// Threadgroup memory before the parts that the last threadgroup merges: its count.
#define kFlashDecodeCountBytes 16

// What a row becomes in the end.
#define MNK_FLASH_DECODE_FINISH(FIELD)            \
  FIELD(uint32_t, heads) /* of the queries */     \
  FIELD(uint32_t, kvHeads)                        \
  FIELD(uint32_t, headDim)  /* of values */       \
  FIELD(uint32_t, lanes)    /* that hold a row */ \
  FIELD(float, inverseRoot) /* of WalshHadamard.h */
MNK_STRUCT(FlashDecodeFinish, MNK_FLASH_DECODE_FINISH);

// One sequence, of those that a dispatch attends to. Keys are counted from the oldest that the cache holds; where rows
// see pinned positions beside a window, those between them are not counted.
#define MNK_FLASH_DECODE_SEQUENCE(FIELD)                                                                       \
  FIELD(uint32_t, sequence) /* of the cache */                                                                 \
  FIELD(uint32_t, hidden)   /* keys after the pinned ones that the cache holds and that are not counted */     \
  FIELD(uint32_t, length)   /* positions */                                                                    \
  FIELD(uint32_t, skipped)  /* positions after the pinned ones that are not counted: overwritten, or hidden */ \
  FIELD(uint32_t, start)    /* what is added to a key's index for its slot, after the pinned ones */           \
  FIELD(uint32_t, firstKey) /* keys that any row of the dispatch sees */                                       \
  FIELD(uint32_t, endKey)                                                                                      \
  FIELD(uint32_t, splitKeys) /* keys of a split */
MNK_STRUCT(FlashDecodeSequence, MNK_FLASH_DECODE_SEQUENCE);

// The rows that a dispatch has of a sequence, where sequences have unequal numbers of rows. Groups of rows are what a
// threadgroup has of them; those of all sequences are counted one after another.
#define MNK_FLASH_DECODE_RUN(FIELD)                                                 \
  FIELD(uint32_t, firstGroup)                                                       \
  FIELD(uint32_t, rowGroups) /* for each head of the cache */                       \
  FIELD(uint32_t, firstRow)  /* of the dispatch, among the rows of all sequences */ \
  FIELD(uint32_t, rows)                                                             \
  FIELD(uint32_t, rowsLeft) /* from the first on, with those of the sequence in later dispatches */
MNK_STRUCT(FlashDecodeRun, MNK_FLASH_DECODE_RUN);

#define MNK_FLASH_DECODE_PARAMS(FIELD)                                                                      \
  FIELD(FlashDecodeFinish, finish)                                                                          \
  FIELD(uint32_t, group)     /* query heads for each head of the cache */                                   \
  FIELD(uint32_t, sequences) /* of this dispatch */                                                         \
  /* Where all sequences have as many rows; others have a FlashDecodeRun each. */                           \
  FIELD(uint32_t, rows)     /* of a sequence's queries in this dispatch */                                  \
  FIELD(uint32_t, firstRow) /* of them, among all rows of the sequence */                                   \
  FIELD(uint32_t, allRows)                                                                                  \
  FIELD(uint32_t, firstSequence) /* of this dispatch, among those of the queries */                         \
  FIELD(uint32_t, rowGroups)     /* simdgroups' worth of rows for each head of the cache */                 \
  FIELD(uint32_t, splits)                                                                                   \
  FIELD(uint32_t, capacity)                                                                                 \
  FIELD(uint32_t, pinned)                                                                                   \
  FIELD(uint32_t, slotStride) /* in vectors */                                                              \
  FIELD(uint32_t, cacheHeadStride)                                                                          \
  FIELD(uint32_t, isCausal)                                                                                 \
  FIELD(uint32_t, window)  /* 0: none */                                                                    \
  FIELD(float, queryScale) /* what queries are multiplied by: log2(e) is in it unless there is a softcap */ \
  FIELD(float, softcap)                                                                                     \
  FIELD(float, keyInverseRoot) /* of WalshHadamard.h, for keys */                                           \
  FIELD(float, keyScaleFactor) /* of mlx1 */                                                                \
  FIELD(float, valueScaleFactor)                                                                            \
  FIELD(uint32_t, keyCodeBytes) /* of a vector, of elements or of codes */                                  \
  FIELD(uint32_t, valueCodeBytes)                                                                           \
  FIELD(uint64_t, maskRowStride) /* in elements; 0 where one serves all */                                  \
  FIELD(uint64_t, maskHeadStride)                                                                           \
  FIELD(uint64_t, maskSequenceStride)                                                                       \
  FIELD(uint64_t, querySequenceStride) /* in elements, from the first of the dispatch on */                 \
  FIELD(uint64_t, queryRowStride)                                                                           \
  FIELD(uint64_t, queryHeadStride)
MNK_STRUCT(FlashDecodeParams, MNK_FLASH_DECODE_PARAMS);

// A kernel that merges parts of rows: of splits, or of MergePartials.
#define MNK_FLASH_DECODE_REDUCE_PARAMS(FIELD)                         \
  FIELD(FlashDecodeFinish, finish)                                    \
  FIELD(uint32_t, parts)                                              \
  FIELD(uint32_t, rowStride)  /* between rows of parts, in vectors */ \
  FIELD(uint32_t, partStride) /* between parts of a row */
MNK_STRUCT(FlashDecodeReduceParams, MNK_FLASH_DECODE_REDUCE_PARAMS);
