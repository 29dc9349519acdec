// Attention of up to `Rows` rows over a cache with 8x8 matrices of halves and f32 accumulation. The simdgroups of a
// threadgroup process the tiles of a split, `Keys` keys each, round robin. MatrixTile.h has the phases of a tile. Keys
// and values are either both quantized or both dense.
#include "AttentionRows.h"
#include "InKernelMerge.h"
#include "MatrixQueries.h"
#include "MatrixTile.h"
#include "OnlineSoftmax.h"

// Merges the simdgroups' parts of rows in threadgroup memory and finishes them, a few rows at a time, because the parts
// of all rows do not fit.
template <ushort Chunks, ushort Dim, ushort RowBlocks>
inline void reduceRows(
    thread MatrixRows<half, Dim, Dim, RowBlocks>& state, thread const AttentionOperands& operands,
    AttentionTokens tokens, uint firstRow, threadgroup float* pool, MatrixLane at) {
  constant FlashDecodeParams& p = operands.p;
  const uint simdgroups = operands.simdgroups;
  const uint simdgroup = operands.simdgroup;
  const uint rows = rowsOf(p, tokens);
  constexpr ushort PartRows = kFlashDecodeMatrixPartRows(Dim);
  constexpr ushort PartStride = Dim + kFlashDecodeMatrixPadding;
  threadgroup float2* partStats = reinterpret_cast<threadgroup float2*>(pool);
  threadgroup float* partSums = pool + firstPartSum(simdgroups * PartRows);
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const float2 rowSum = sumOfColumns(state.rowSum[b]);
    for (uint from = 0; from < 8u && firstRow + b * 8u + from < rows; from += PartRows) {
      // All simdgroups have finished with the tables, or with the previous rows.
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (at.column / PartRows * PartRows == from) {
        MNK_UNROLL
        for (ushort side = 0; side < 2; ++side) {
          const uint part = simdgroup * PartRows + at.column % PartRows + side;
          const float unit = unitOf(state.unit[b])[side] * levelFactor(kvValueBits);
          threadgroup float* partInto = partSums + part * PartStride;
          MNK_UNROLL
          for (ushort i = 0; i < Dim / 8; i = ushort(i + 4)) {
            *reinterpret_cast<threadgroup float4*>(partInto + sharedElement<Dim, 8>(at.row, i)) =
                float4(
                    state.result[b][i].thread_elements()[side], state.result[b][i + 1].thread_elements()[side],
                    state.result[b][i + 2].thread_elements()[side], state.result[b][i + 3].thread_elements()[side]) *
                unit;
          }
          if (at.row == 0u) {
            partStats[part] = side == 0 ? float2(state.rowMax[b].x, rowSum.x) : float2(state.rowMax[b].y, rowSum.y);
          }
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint r = simdgroup; r < PartRows; r += simdgroups) {
        const uint row = firstRow + b * 8u + from + r;
        if (row < rows) {  // padding columns of a matrix are not rows
          const MergedRow<Chunks> merged = mergedInThreadgroup<Chunks>(
              partSums + r * PartStride, PartRows * PartStride, partStats + r, PartRows, simdgroups, p.finish.lanes,
              operands.lane);
          finishPart<Chunks>(merged, operands, rowIndex(p, tokens, row));
        }
      }
    }
  }
}

template <ushort Dim, ushort Rows, ushort Keys>
kernel void flashDecodeMatrix(MNK_ATTENTION_PARAMETERS) {
  constexpr ushort RowBlocks = Rows / 8;
  constexpr ushort Blocks = Keys / 8;
  constexpr ushort Chunks = (Dim + 127) / 128;
  // Prefetches the next tile during the arithmetic of this one. Small tiles, for GPUs with few registers, are loaded
  // when they are needed; other simdgroups hide the latency.
  constexpr bool Prefetches = Keys > 8;
  const AttentionOperands operands{MNK_ATTENTION_ARGUMENTS};
  const AttentionTokens tokens = tokensOf(operands, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint rows = rowsOf(p, tokens);
  const uint firstRow = tokens.rowGroup * Rows;
  const MatrixLane at = matrixLane(lane);
  const CacheHead head = cacheHead(operands, tokens, keyLength(Dim), valueLength(Dim));
  const KeyRange split = keysOfSplit(sequence, place.x);
  const uint end = split.end;

  // The first loads overlap with the rest of the setup. Queries come first because they are needed first. The
  // simdgroups share the work of preparing queries.
  float4 x[Chunks];
  if (preparesQueries()) {
    const ulong start = queryStart(p, tokens, min(firstRow + min(simdgroup, uint(Rows) - 1u), rows - 1u));
    loadQuery<Chunks>(x, queries, start, head.keys.headDim, Dim / (4 * Chunks), lane);
  }
  const MatrixTables tables = matrixTables(simdgroup * 32u + lane);
  threadgroup half2* keyTable = reinterpret_cast<threadgroup half2*>(pool);
  threadgroup half2* lastTable = hasTwoTables() ? keyTable + tables.bytes / 4u : keyTable;
  QueryShare<Dim, RowBlocks> share;
  MatrixTile<Dim, Blocks> tile;
  uint base = split.begin + simdgroup * Keys;
  if (base < end) {
    if (!preparesQueries()) {
      loadQueries(share, operands, tokens, firstRow, at);
    }
    if (Prefetches) {
      loadKeys(tile, p, sequence, head.keys, at, base, end);
      loadValues(tile, p, sequence, head.values, at, base, end);
      loadValueScales(tile, p, sequence, head.values, at, base, end);
    }
  }

  MatrixRows<half, Dim, Dim, RowBlocks> state;
  if (preparesQueries()) {
    prepareQueries<Rows, Chunks>(
        share, state, x, operands, tokens, firstRow, head.keys.headDim, tables, keyTable, lastTable, at);
  } else {
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      state.scoreScale[b] = float2(p.queryScale);
    }
  }
  const uint keyCopy = copyOfLane(kvKeyBits, lane);
  const uint valueCopy = copyOfLane(kvValueBits, lane);
  startSoftmax(state);
  setQueries(state, share, at);
  setRows(state, operands, tokens, firstRow, at);
  const KeyRange common = commonKeys(operands, tokens, 0, rows - 1u, end);

  while (base < end) {
    const uint next = base + simdgroups * Keys;
    const bool isCommon = base >= common.begin && base + Keys <= common.end;
    if (!Prefetches) {
      loadKeys(tile, p, sequence, head.keys, at, base, end);
      loadValueScales(tile, p, sequence, head.values, at, base, end);
    }
    MatrixScores<RowBlocks, Blocks> scores = scoreTile(tile, state, head.keys, keyTable, keyCopy);
    if (Prefetches) {
      loadKeys(tile, p, sequence, head.keys, at, next, end);
    }
    maskScores(scores, state, operands, sequence, base + keyOfBlock(at.row), end, isCommon);
    updateSoftmax(scores, state);
    if (kvHasQuantizedKeys) {
      float scales[Blocks];
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        scales[n] = codebookScale(tile.valueScales[n], head.values);
      }
      scaleProbs(scores, state, scales, flashHasMask || !isCommon);
    }
    if (!Prefetches) {
      loadValues(tile, p, sequence, head.values, at, base, end);
    }
    accumulateValues(scores, state, tile, operands, tokens, lastTable, valueCopy, at, base, end, isCommon);
    if (Prefetches) {
      loadValues(tile, p, sequence, head.values, at, next, end);
      loadValueScales(tile, p, sequence, head.values, at, next, end);
    }
    base = next;
  }

  reduceRows<Chunks>(state, operands, tokens, firstRow, pool, at);
#if MNK_HAS_DEVICE_FENCES
  if (flashMergesInKernel) {
    mergeInKernel<Chunks, Rows>(operands, tokens, firstRow, pool);
  }
#endif
}

#define ROW(dim, rows, keys) \
  instantiate_kernel("flashDecodeMatrix_" #dim "_" #rows "_" #keys, flashDecodeMatrix, dim, rows, keys)
MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
