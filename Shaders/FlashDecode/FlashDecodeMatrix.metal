// Attention of up to `Rows` rows over a cache with 8x8 matrices of halves and f32 accumulation. The simdgroups of a
// threadgroup process the tiles of a split, `Keys` keys each, round robin. MatrixTile.h has the phases of a tile. Keys
// and values are either both quantized or both dense.
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "InKernelMerge.h"
#include "MatrixTile.h"

// Whether queries are prepared in threadgroup memory: rotated for a quantized cache, and brought into the range of
// halves. f16 queries of a dense cache are used as they are.
inline bool preparesQueries() {
  return kvHasQuantizedKeys || flashQueryType != uint(kFloat16);
}

// A lane's share of the queries: for its two columns in each block of rows, groups of eight neighboring elements, of
// which it uses one of each pair.
template <ushort Dim, ushort RowBlocks>
struct QueryShare {
  uint of[RowBlocks][2][Dim / 8];
};

// Prepared queries in threadgroup memory: halves, then the biases of the keys' mean, then the factors that undo the
// normalization. Rows of halves are padded so that neighboring lanes access different banks.
constexpr uint preparedRow(ushort dim, uint r) {  // in halves
  return r * kFlashDecodeMatrixQueryStride(dim);
}
constexpr uint preparedFloats(ushort dim, ushort rows) {  // where biases start, then scales
  return rows * kFlashDecodeMatrixQueryStride(dim) / 2;
}

// Rotates a query, normalizes it to the range of halves, and stores it.
template <ushort Dim, ushort Rows, ushort Chunks>
inline void prepareQuery(
    threadgroup float* prepared, thread float4* x, uint r, constant FlashDecodeParams& p, uint kvHead, uint headDim,
    uint lanes, uint lane, device const float* keyMeans, device const float* channelScales) {
  const float bias = rotateQuery<Chunks>(x, p, kvHead, headDim, lanes, lane, 1.0f, keyMeans, channelScales);
  const float scale = normalizeQuery<Chunks>(x);
  if (r < Rows && lane < lanes) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      reinterpret_cast<threadgroup half4*>(prepared)[preparedRow(Dim, r) / 4u + lane * Chunks + i] =
          half4(half(x[i].x), half(x[i].y), half(x[i].z), half(x[i].w));
    }
  }
  if (r < Rows && lane == 0u) {
    prepared[preparedFloats(Dim, Rows) + r] = bias;
    prepared[preparedFloats(Dim, Rows) + Rows + r] = scale;
  }
}

template <ushort Rows, ushort Dim, ushort RowBlocks>
inline void readQueries(
    thread QueryShare<Dim, RowBlocks>& share, thread MatrixRows<half, Dim, Dim, RowBlocks>& rows,
    threadgroup float* prepared, MatrixLane at, float queryScale) {
  MNK_UNROLL
  for (ushort r = 0; r < 2 * RowBlocks; ++r) {
    const uint row = r / 2 * 8u + at.column + r % 2;
    MNK_UNROLL
    for (ushort i = 0; i < Dim / 32; ++i) {
      const uint element = sharedElement<Dim, 4>(at.row / 2u, 8u * i);
      setHalves(
          share.of[r / 2][r % 2] + 4 * i,
          reinterpret_cast<threadgroup const uint4*>(prepared)[(preparedRow(Dim, row) + element) / 8u]);
    }
  }
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const uint row = b * 8u + at.column;
    threadgroup const float* floats = prepared + preparedFloats(Dim, Rows) + row;
    rows.bias[b] = float2(floats[0], floats[1]) * queryScale;
    rows.scoreScale[b] = float2(floats[Rows], floats[Rows + 1]) * (queryScale * levelFactor(kvKeyBits));
  }
}

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
          finishPart<Chunks>(merged, p, rowIndex(p, tokens, place.y, row), place.x, lane, out);
        }
      }
    }
  }
}

template <ushort Dim, ushort Rows, ushort Keys>
kernel void flashDecodeMatrix(
    constant FlashDecodeParams& p [[buffer(kFlashDecodeParams)]],
    constant FlashDecodeSequence* sequences [[buffer(kFlashDecodeSequences)]],
    device const uchar* queries [[buffer(kFlashDecodeQueries)]], device const uchar* keys [[buffer(kFlashDecodeKeys)]],
    device const uchar* values [[buffer(kFlashDecodeValues)]],
    device const uchar* keyScales [[buffer(kFlashDecodeKeyScales), function_constant(kvHasQuantizedKeys)]],
    device const uchar* valueScales [[buffer(kFlashDecodeValueScales), function_constant(kvHasQuantizedValues)]],
    device const float* keyMeans [[buffer(kFlashDecodeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kFlashDecodeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales [[buffer(kFlashDecodeChannelScales), function_constant(kvHasChannelScales)]],
    device const uchar* mask [[buffer(kFlashDecodeMask), function_constant(flashHasMask)]],
    device const float* slopes [[buffer(kFlashDecodeSlopes), function_constant(flashHasSlopes)]],
    device const float* sinks [[buffer(kFlashDecodeSinks), function_constant(flashHasSinks)]],
    device uchar* into [[buffer(kFlashDecodeInto), function_constant(flashWritesResults)]],
    device float* logSumExp [[buffer(kFlashDecodeLogSumExp), function_constant(flashHasLogSumExp)]],
    device float* sums [[buffer(kFlashDecodeSums), function_constant(flashWritesSums)]],
    device float* stats [[buffer(kFlashDecodeStats), function_constant(flashWritesSums)]],
    device atomic_float* splitSums [[buffer(kFlashDecodePartSums), function_constant(flashMergesInKernel)]],
    device atomic_float* splitStats [[buffer(kFlashDecodePartStats), function_constant(flashMergesInKernel)]],
    device atomic_uint* arrived [[buffer(kFlashDecodeArrived), function_constant(flashMergesInKernel)]],
    constant FlashDecodeRun* runs [[buffer(kFlashDecodeRuns), function_constant(flashIsRagged)]],
    threadgroup float* pool [[threadgroup_memory(0)]], uint3 place [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr ushort RowBlocks = Rows / 8;
  constexpr ushort Blocks = Keys / 8;
  constexpr ushort Chunks = (Dim + 127) / 128;
  constexpr ushort QueryLanes = Dim / (4 * Chunks);
  // Prefetches the next tile during the arithmetic of this one. Small tiles, for GPUs with few registers, are loaded
  // when they are needed; other simdgroups hide the latency.
  constexpr bool Prefetches = Keys > 8;

  const AttentionTokens tokens = tokensOf(p, runs, place);
  constant FlashDecodeSequence& sequence = sequences[tokens.sequence];
  const uint kvHead = place.y;
  const uint rows = p.group * tokens.count;
  const uint firstRow = tokens.rowGroup * Rows;
  const MatrixLane at = matrixLane(lane);

  const ulong headBase = firstVector(p, sequence, kvHead);
  const CacheVectors keyVectors = vectorsFrom(
      keys, keyScales, headBase, keyCodeBits(), keyLength(Dim), p.keyCodeBytes, p.keyInverseRoot, p.keyScaleFactor);
  const CacheVectors valueVectors = vectorsFrom(
      values, valueScales, headBase, valueCodeBits(), valueLength(Dim), p.valueCodeBytes, p.finish.inverseRoot,
      p.valueScaleFactor);
  const uint begin = min(sequence.firstKey + place.x * sequence.splitKeys, sequence.endKey);
  const uint end = min(begin + sequence.splitKeys, sequence.endKey);

  // The first loads overlap with the rest of the setup. Queries come first because they are needed first. The
  // simdgroups share the work of preparing queries.
  float4 x[Chunks];
  if (preparesQueries()) {
    const uint row = min(firstRow + min(simdgroup, uint(Rows) - 1u), rows - 1u);
    loadQuery<Chunks>(x, queries, queryStart(p, tokens, kvHead, row), keyVectors.headDim, QueryLanes, lane);
  }
  const uint threadIndex = simdgroup * 32u + lane;
  const uint lastBits = looksUpLevels(kvValueBits) ? kvValueBits : kvKeyBits;  // of the last table, if there are any
  const uint keyEntry = hasTwoTables() ? tableEntry(kvKeyBits, threadIndex) : 0u;
  const uint lastEntry = looksUpLevels(lastBits) ? tableEntry(lastBits, threadIndex) : 0u;
  QueryShare<Dim, RowBlocks> share;
  MatrixTile<Dim, Blocks> tile;
  uint base = begin + simdgroup * Keys;
  if (base < end) {
    if (!preparesQueries()) {
      MNK_UNROLL
      for (ushort r = 0; r < 2 * RowBlocks; ++r) {
        const uint row = min(firstRow + r / 2 * 8u + at.column + r % 2, rows - 1u);
        const ulong start = queryStart(p, tokens, kvHead, row);
        MNK_UNROLL
        for (ushort i = 0; i < Dim / 32; ++i) {
          loadHalves(share.of[r / 2][r % 2] + 4 * i, queries, start + sharedElement<Dim, 4>(at.row / 2u, 8u * i));
        }
      }
    }
    if (Prefetches) {
      loadKeys(tile, p, sequence, keyVectors, at, base, end);
      loadValues(tile, p, sequence, valueVectors, at, base, end);
      loadValueScales(tile, p, sequence, valueVectors, at, base, end);
    }
  }

  MatrixRows<half, Dim, Dim, RowBlocks> state;
  const uint tableBytes = 1u << (hasTwoTables() ? flashTableBits - 1u : flashTableBits);
  threadgroup half2* keyTable = reinterpret_cast<threadgroup half2*>(pool);
  threadgroup half2* lastTable = hasTwoTables() ? keyTable + tableBytes / 4u : keyTable;
  if (preparesQueries()) {
    // Queries and full tables do not fit together. Queries temporarily occupy the end of a table, which is filled after
    // they have been read.
    const uint tableEnd = looksUpLevels(lastBits) ? tableBytes - kFlashDecodeMatrixQueryBytes(Dim, Rows) : 0u;
    if (hasTwoTables()) {
      fillTable(keyTable, kvKeyBits, keyEntry, 0, tableBytes, threadIndex, simdgroups * 32u);
    }
    if (looksUpLevels(lastBits)) {
      fillTable(lastTable, lastBits, lastEntry, 0, tableEnd, threadIndex, simdgroups * 32u);
    }
    threadgroup float* prepared = reinterpret_cast<threadgroup float*>(lastTable) + tableEnd / 4u;
    // Each simdgroup runs the loop at least once; otherwise the compiler would sink the first load into the loop.
    for (uint r = simdgroup; r < max(simdgroup + 1u, uint(Rows)); r += simdgroups) {
      if (r != simdgroup) {
        const uint row = min(firstRow + r, rows - 1u);
        loadQuery<Chunks>(x, queries, queryStart(p, tokens, kvHead, row), keyVectors.headDim, QueryLanes, lane);
      }
      prepareQuery<Dim, Rows, Chunks>(
          prepared, x, r, p, kvHead, keyVectors.headDim, QueryLanes, lane, keyMeans, channelScales);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    readQueries<Rows>(share, state, prepared, at, p.queryScale);
    if (looksUpLevels(lastBits)) {
      threadgroup_barrier(mem_flags::mem_threadgroup);  // queries are read
      fillTable(lastTable, lastBits, lastEntry, tableEnd, tableBytes, threadIndex, simdgroups * 32u);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  } else {
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      state.scoreScale[b] = float2(p.queryScale);
    }
  }
  const uint keyCopy = copyOfLane(kvKeyBits, lane);
  const uint valueCopy = copyOfLane(kvValueBits, lane);

  startSoftmax(state);
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    MNK_UNROLL
    for (ushort i = 0; i < Dim / 8; ++i) {
      const uint2 pair = elementsOfPair<Dim / 4>(i, kvKeyBits);
      const half2 first = elementOfBoth(share.of[b][0], share.of[b][1], pair.x);
      const half2 second = elementOfBoth(share.of[b][0], share.of[b][1], pair.y);
      state.query[b][i] = matrixOf(at.row % 2u == 0u ? first : second);
    }
    MNK_UNROLL
    for (ushort side = 0; side < 2; ++side) {
      const uint row = min(firstRow + b * 8u + at.column + side, rows - 1u);
      state.row[b][side] = attentionRow(p, sequence, tokens, kvHead, row, slopes);
    }
  }
  // All rows see all keys in [commonBegin, commonEnd), because rows are ordered by position.
  const uint commonBegin = attentionRow(p, sequence, tokens, kvHead, rows - 1u, slopes).firstKey;
  const uint commonEnd = min(end, attentionRow(p, sequence, tokens, kvHead, 0, slopes).endKey);

  while (base < end) {
    const uint next = base + simdgroups * Keys;
    const bool isCommon = base >= commonBegin && base + Keys <= commonEnd;
    if (!Prefetches) {
      loadKeys(tile, p, sequence, keyVectors, at, base, end);
      loadValueScales(tile, p, sequence, valueVectors, at, base, end);
    }
    MatrixScores<RowBlocks, Blocks> scores = scoreTile(tile, state, keyVectors, keyTable, keyCopy);
    if (Prefetches) {
      loadKeys(tile, p, sequence, keyVectors, at, next, end);
    }
    maskScores(scores, state, p, sequence, mask, base + keyOfBlock(at.row), end, isCommon);
    updateSoftmax(scores, state);
    if (kvHasQuantizedKeys) {
      float scales[Blocks];
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        scales[n] = codebookScale(tile.valueScales[n], valueVectors);
      }
      scaleProbs(scores, state, scales, flashHasMask || !isCommon);
    }
    if (!Prefetches) {
      loadValues(tile, p, sequence, valueVectors, at, base, end);
    }
    accumulateValues(scores, state, tile, p, sequence, tokens, slopes, lastTable, valueCopy, at, base, end, isCommon);
    if (Prefetches) {
      loadValues(tile, p, sequence, valueVectors, at, next, end);
      loadValueScales(tile, p, sequence, valueVectors, at, next, end);
    }
    base = next;
  }

  const AttentionOutputs out{valueMeans, sinks, into, logSumExp, sums, stats, splitSums, splitStats, arrived};
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
