// The queries of the matrix kernel, as a lane's share of them in registers, in matrices.
#pragma once
#include "AttentionRows.h"
#include "MatrixSoftmax.h"

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
    threadgroup float* prepared, thread float4* x, uint r, thread const AttentionOperands& operands, uint kvHead,
    uint headDim, uint lane) {
  constexpr ushort Lanes = Dim / (4 * Chunks);
  const float bias = rotateQuery<Chunks>(x, operands, kvHead, headDim, Lanes, lane, 1.0f);
  const float scale = normalizeQuery<Chunks>(x);
  if (r < Rows && lane < Lanes) {
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

// Prepares all queries, fills the tables, and reads the lane's share of the queries. The simdgroups take turns; `x` is
// the first query of this one, loaded early. Queries and full tables do not fit together: queries temporarily occupy
// the end of a table, which is filled after they have been read.
template <ushort Rows, ushort Chunks, ushort Dim, ushort RowBlocks>
inline void prepareQueries(
    thread QueryShare<Dim, RowBlocks>& share, thread MatrixRows<half, Dim, Dim, RowBlocks>& rows, thread float4* x,
    thread const AttentionOperands& operands, AttentionTokens tokens, uint firstRow, uint headDim, MatrixTables tables,
    threadgroup half2* keyTable, threadgroup half2* lastTable, MatrixLane at) {
  const uint simdgroup = operands.simdgroup;
  const uint simdgroups = operands.simdgroups;
  const uint threadIndex = simdgroup * 32u + operands.lane;
  const bool hasTable = looksUpLevels(tables.lastBits);
  const uint end = hasTable ? tables.bytes - kFlashDecodeMatrixQueryBytes(Dim, Rows) : 0u;
  if (hasTwoTables()) {
    fillTable(keyTable, kvKeyBits, tables.keyEntry, 0, tables.bytes, threadIndex, simdgroups * 32u);
  }
  if (hasTable) {
    fillTable(lastTable, tables.lastBits, tables.lastEntry, 0, end, threadIndex, simdgroups * 32u);
  }
  threadgroup float* prepared = reinterpret_cast<threadgroup float*>(lastTable) + end / 4u;
  // Each simdgroup runs the loop at least once; otherwise the compiler would sink the first load into the loop.
  for (uint r = simdgroup; r < max(simdgroup + 1u, uint(Rows)); r += simdgroups) {
    if (r != simdgroup) {
      const ulong start = queryStart(operands.p, tokens, min(firstRow + r, rowsOf(operands.p, tokens) - 1u));
      loadQuery<Chunks>(x, operands.queries, start, headDim, Dim / (4 * Chunks), operands.lane);
    }
    prepareQuery<Dim, Rows, Chunks>(prepared, x, r, operands, tokens.kvHead, headDim, operands.lane);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  readQueries<Rows>(share, rows, prepared, at, operands.p.queryScale);
  if (hasTable) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // queries are read
    fillTable(lastTable, tables.lastBits, tables.lastEntry, end, tables.bytes, threadIndex, simdgroups * 32u);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// Loads a lane's share of queries that need no preparation.
template <ushort Dim, ushort RowBlocks>
inline void loadQueries(
    thread QueryShare<Dim, RowBlocks>& share, thread const AttentionOperands& operands, AttentionTokens tokens,
    uint firstRow, MatrixLane at) {
  MNK_UNROLL
  for (ushort r = 0; r < 2 * RowBlocks; ++r) {
    const uint row = min(firstRow + r / 2 * 8u + at.column + r % 2, rowsOf(operands.p, tokens) - 1u);
    const ulong start = queryStart(operands.p, tokens, row);
    MNK_UNROLL
    for (ushort i = 0; i < Dim / 32; ++i) {
      loadHalves(share.of[r / 2][r % 2] + 4 * i, operands.queries, start + sharedElement<Dim, 4>(at.row / 2u, 8u * i));
    }
  }
}

// Sets the matrices of the queries.
template <ushort Dim, ushort RowBlocks>
inline void setQueries(
    thread MatrixRows<half, Dim, Dim, RowBlocks>& rows, thread QueryShare<Dim, RowBlocks>& share, MatrixLane at) {
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * (Dim / 8); ++i) {
    const ushort b = i / (Dim / 8);
    const uint2 pair = elementsOfPair<Dim / 4>(i % (Dim / 8), kvKeyBits);
    const half2 first = elementOfBoth(share.of[b][0], share.of[b][1], pair.x);
    const half2 second = elementOfBoth(share.of[b][0], share.of[b][1], pair.y);
    rows.query[b][i % (Dim / 8)] = matrixOf(at.row % 2u == 0u ? first : second);
  }
}
