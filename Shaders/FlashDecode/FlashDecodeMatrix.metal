// Attention of up to `Rows` rows over a cache with 8x8 matrices of halves and f32 accumulation. The simdgroups of a
// threadgroup process the tiles of a split, `Keys` keys each, round robin. MatrixTile.h has the phases of a tile. Keys
// and values are either both quantized or both dense.
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "InKernelMerge.h"
#include "MatrixQueries.h"
#include "MatrixTile.h"

// Merges the simdgroups' parts of rows in threadgroup memory and finishes them, a few rows at a time, because the parts
// of all rows do not fit.
template <ushort Chunks, ushort Dim, ushort RowBlocks>
inline void reduceRows(
    thread MatrixRows<half, Dim, Dim, RowBlocks>& state, constant FlashDecodeParams& p, AttentionTokens tokens,
    uint3 place, uint firstRow, threadgroup float* pool, MatrixLane at, uint simdgroups, uint simdgroup, uint lane,
    AttentionOutputs out) {
  constexpr ushort PartRows = kFlashDecodeMatrixPartRows(Dim);
  constexpr ushort PartStride = Dim + kFlashDecodeMatrixPadding;
  const uint rows = p.group * tokens.count;
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
              lane);
          finishPart<Chunks>(merged, p, rowIndex(p, tokens, row), place.x, lane, out);
        }
      }
    }
  }
}

template <ushort Dim, ushort Rows, ushort Keys>
kernel void flashDecodeMatrix(
    MNK_ATTENTION_PARAMETERS threadgroup float* pool [[threadgroup_memory(0)]],
    uint3 place [[threadgroup_position_in_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr ushort RowBlocks = Rows / 8;
  constexpr ushort Blocks = Keys / 8;
  constexpr ushort Chunks = (Dim + 127) / 128;
  // Prefetches the next tile during the arithmetic of this one. Small tiles, for GPUs with few registers, are loaded
  // when they are needed; other simdgroups hide the latency.
  constexpr bool Prefetches = Keys > 8;
  const AttentionOperands operands{MNK_ATTENTION_ARGUMENTS};
  const AttentionTokens tokens = tokensOf(operands, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint lastRow = p.group * tokens.count - 1u;
  const uint firstRow = tokens.rowGroup * Rows;
  const MatrixLane at = matrixLane(lane);
  const CacheHead head = cacheHead(operands, tokens, keyLength(Dim), valueLength(Dim), false);
  const KeyRange split = keysOfSplit(sequence, place.x);
  const uint end = split.end;

  // The first loads overlap with the rest of the setup. Queries come first because they are needed first. The
  // simdgroups share the work of preparing queries.
  float4 x[Chunks];
  if (preparesQueries()) {
    const ulong start = queryStart(p, tokens, min(firstRow + min(simdgroup, uint(Rows) - 1u), lastRow));
    loadQuery<Chunks>(x, queries, start, head.keys.headDim, queryLanes(Dim, Chunks), lane);
  }
  const MatrixTables tables = tablesIn(pool, simdgroup * 32u + lane);
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
        share, state, x, operands, tokens, firstRow, head.keys.headDim, tables, at, simdgroups, simdgroup, lane);
  } else {
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      state.scoreScale[b] = float2(p.queryScale);
    }
  }
  const uint keyCopy = copyOfLane(kvKeyBits, lane);
  const uint valueCopy = copyOfLane(kvValueBits, lane);
  startSoftmax(state);
  setRows(state, share, operands, tokens, firstRow, at);
  const KeyRange common = commonKeys(operands, tokens, 0, lastRow, end);

  while (base < end) {
    const uint next = base + simdgroups * Keys;
    const bool isCommon = base >= common.begin && base + Keys <= common.end;
    if (!Prefetches) {
      loadKeys(tile, p, sequence, head.keys, at, base, end);
      loadValueScales(tile, p, sequence, head.values, at, base, end);
    }
    MatrixScores<RowBlocks, Blocks> scores = scoreTile(tile, state, head.keys, tables.keys, keyCopy);
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
    accumulateValues(scores, state, tile, operands, tokens, tables.last, valueCopy, at, base, end, isCommon);
    if (Prefetches) {
      loadValues(tile, p, sequence, head.values, at, next, end);
      loadValueScales(tile, p, sequence, head.values, at, next, end);
    }
    base = next;
  }

  const AttentionOutputs out = outputsOf(operands);
  reduceRows<Chunks>(state, p, tokens, place, firstRow, pool, at, simdgroups, simdgroup, lane, out);
#if MNK_HAS_DEVICE_FENCES
  if (flashMergesInKernel) {
    mergeInKernel<Chunks, Rows>(p, tokens, place, firstRow, pool, simdgroups, simdgroup, lane, out);
  }
#endif
}

#define ROW(dim, rows, keys) \
  instantiate_kernel("flashDecodeMatrix_" #dim "_" #rows "_" #keys, flashDecodeMatrix, dim, rows, keys)
MNK_FLASH_MATRIX_INSTANCES(ROW)
#undef ROW
