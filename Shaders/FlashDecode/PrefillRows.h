// The rows of the prefill kernel, before and after its tiles: queries that need preparation, and results that matrices
// store themselves.
#pragma once
#include "AttentionRows.h"
#include "OnlineSoftmax.h"
#include "PrefillTile.h"

// Before and after the matrix phase, a lane holds eight elements of a row of up to 256, and sixteen of a latent part.
constant constexpr ushort kPrefillChunks = 2;
constant constexpr ushort kLatentChunks = 4;

// The rows of a threadgroup, and those of a simdgroup.
struct PrefillRows {
  uint first;     // of the threadgroup
  uint end;       // of the rows of its tile; the threadgroup has some if `first` is below it
  uint count;     // of its rows, if it has any
  uint rowGroup;  // of the simdgroup; rowGroups groups have OwnRows rows each
  uint rowGroups;
  uint own;     // first of the simdgroup's rows, relative to `first`
  uint part;    // of the rows' elements
  bool isUsed;  // whether the simdgroup has rows
};
// Threadgroups that have fewer simdgroups than were planned share the rows of each that was: `sharing` of them, of
// which this is number `share`.
template <ushort OwnRows>
inline PrefillRows prefillRows(thread const AttentionOperands& operands, AttentionTokens tokens, uint share) {
  PrefillRows result;
  result.rowGroup = operands.simdgroup / flashSimdgroupsPerRow;
  result.rowGroups = operands.simdgroups / flashSimdgroupsPerRow;
  result.part = operands.simdgroup - result.rowGroup * flashSimdgroupsPerRow;
  // Tiles of the newest rows have the most keys and are scheduled first, to balance the load.
  const uint tileIndex = tokens.rowGroups - 1u - tokens.rowGroup;
  const uint tileRows = kFlashPrefillTileRows(rowsOf(operands.p, tokens), tokens.rowGroups, OwnRows);
  result.end = min((tileIndex + 1u) * tileRows, rowsOf(operands.p, tokens));
  result.first = tileIndex * tileRows + share * result.rowGroups * OwnRows;
  result.count = min(result.rowGroups * OwnRows, result.end - result.first);
  result.own = result.rowGroup * OwnRows;
  result.isUsed = result.rowGroup < result.rowGroups && result.own < result.count;
  return result;
}

template <typename T>
inline void setFour(threadgroup T* into, float4 x) {
  *reinterpret_cast<threadgroup vec<T, 4>*>(into) = vec<T, 4>(T(x.x), T(x.y), T(x.z), T(x.w));
}

// Applies the Hadamard rotation of a quantized cache to a query, normalizes it if T is half, and stores it. For a
// latent cache, the first `latentDim` elements are rotated like values, and the rest like keys.
template <typename T, bool IsLatent>
MNK_SHARED void prepareRow(
    threadgroup T* into, threadgroup float2* stat, thread const AttentionOperands& operands, uint kvHead, ulong start,
    uint latentDim, uint headDim, uint lane) {
  constant FlashDecodeParams& p = operands.p;
  constexpr ushort Chunks = kPrefillChunks;
  constexpr ushort Latent = IsLatent ? kLatentChunks : 0;
  const uint lanes = lanesOf(headDim, Chunks);
  const bool isHalf = sizeof(T) == 2;
  const float scale = isHalf ? 1.0f : p.queryScale;
  float4 x[Latent + Chunks];
  thread float4* rest = x + Latent;
  loadQuery<Chunks>(rest, operands.queries, start + latentDim, headDim, lanes, lane);
  float bias = rotateQuery<Chunks>(rest, operands, kvHead, headDim, lanes, lane, scale);
  if (IsLatent) {
    constexpr ushort Own = IsLatent ? kLatentChunks : Chunks;
    const uint latentLanes = latentDim / (4u * Own);
    loadQuery<Own>(x, operands.queries, start, latentDim, latentLanes, lane);
    bias += rotateLatent<Own>(x, operands, kvHead, latentDim, latentLanes, lane, scale);
  }
  float2 found = float2(bias, 1.0f);
  if (isHalf) {
    found = float2(bias * p.queryScale, normalizeQuery<Latent + Chunks>(x) * p.queryScale);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Latent; ++i) {
    setFour(into + (lane * Latent + i) * 4u, x[i]);
  }
  if (lane * (4u * kPrefillChunks) < headDim) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      setFour(into + latentDim + (lane * Chunks + i) * 4u, rest[i]);
    }
  }
  if (lane == 0u) {
    *stat = found;
  }
}

// Whether queries are f16 and multiply dense keys: they need no preparation. `isHalf`: tiles have halves.
inline bool usesQueriesAsTheyAre(bool isHalf) {
  return isHalf && !kvHasQuantizedKeys && !kvHasQuantizedValues && flashQueryType == uint(kFloat16) &&
         flashIsVectorized;
}

// Loads queries that need no preparation.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void loadQueries(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& state, thread const AttentionOperands& operands,
    AttentionTokens tokens, PrefillRows rows, MatrixLane at) {
  constexpr ushort Extra = Queries - Dim;
  const uint latentDim = Extra != 0 ? Dim * flashSimdgroupsPerRow : 0u;
  device const half* from = reinterpret_cast<device const half*>(operands.queries);
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const uint row = rows.first + rows.own + b * 8u + at.column;
    device const half* left = from + queryStart(operands.p, tokens, min(row, rowsOf(operands.p, tokens) - 1u));
    device const half* right = from + queryStart(operands.p, tokens, min(row + 1u, rowsOf(operands.p, tokens) - 1u));
    setQueries<0, Dim>(state, b, left + rows.part * Dim, right + rows.part * Dim, at);
    left += latentDim + rows.part * Extra;
    right += latentDim + rows.part * Extra;
    setQueries<Dim, Extra>(state, b, left, right, at);
    state.scoreScale[b] = float2(operands.p.queryScale);
    state.bias[b] = float2(0.0f);
  }
}

// Prepares queries in the memory of the tiles, `Vectors` at a time, and reads them.
template <uint Vectors, typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void prepareQueries(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& state, threadgroup T* queries, threadgroup float2* rowStats,
    thread const AttentionOperands& operands, AttentionTokens tokens, PrefillRows rows, MatrixLane at) {
  const uint simdgroup = operands.simdgroup;
  const uint simdgroups = operands.simdgroups;
  constexpr ushort Extra = Queries - Dim;
  const uint latentDim = Extra != 0 ? Dim * flashSimdgroupsPerRow : 0u;
  const uint keyDim = (Extra != 0 ? Extra : Dim) * flashSimdgroupsPerRow;
  const uint stride = latentDim + keyDim + kFlashPrefillRowPadding;
  for (uint first = 0; first < rows.count; first += Vectors) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the previous queries
    for (uint r = first + simdgroup; r < min(first + Vectors, rows.rowGroups * 8u * RowBlocks); r += simdgroups) {
      const ulong start = queryStart(operands.p, tokens, min(rows.first + r, rowsOf(operands.p, tokens) - 1u));
      prepareRow<T, Extra != 0>(
          queries + (r - first) * stride, rowStats + (r - first), operands, tokens.kvHead, start, latentDim, keyDim,
          operands.lane);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      const uint r = rows.own + b * 8u;
      if (rows.isUsed && r >= first && r < first + Vectors) {
        threadgroup const T* left = queries + (r - first + at.column) * stride;
        setQueries<0, Dim>(state, b, left + rows.part * Dim, left + stride + rows.part * Dim, at);
        left += latentDim + rows.part * Extra;
        setQueries<Dim, Extra>(state, b, left, left + stride, at);
        const float2 x = rowStats[r - first + at.column];
        const float2 y = rowStats[r - first + at.column + 1u];
        state.bias[b] = float2(x.x, y.x);
        state.scoreScale[b] = float2(x.y, y.y);
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups have read their queries
}

// Neighboring elements `16 * n` and on of a lane's row.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline float2 elementsOf(thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, ushort b, ushort side, ushort n) {
  return float2(rows.result[b][2 * n].thread_elements()[side], rows.result[b][2 * n + 1].thread_elements()[side]);
}

// Stores a simdgroup's elements of rows, which need no rotation, as results or as parts.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void storeRows(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& state, thread const AttentionOperands& operands,
    AttentionTokens tokens, PrefillRows rows, MatrixLane at) {
  constant FlashDecodeParams& p = operands.p;
  const AttentionOutputs out = operands.out;
  const bool isPart = flashIsSplit || flashWritesPartials;
  const bool isFirst = rows.part == 0u && at.row == 0u;
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const float2 rowSum = sumOfColumns(state.rowSum[b]);
    MNK_UNROLL
    for (ushort side = 0; side < 2; ++side) {
      const uint r = rows.own + b * 8u + at.column + side;
      if (rows.isUsed && r < rows.count) {
        const ulong row = rowIndex(p, tokens, rows.first + r);
        const ulong index = flashIsSplit ? row * p.splits + operands.place.x : row;
        float factor = unitOf(state.unit[b])[side];
        if (!flashIsSplit) {
          factor *= finishFactor(state.rowMax[b][side], rowSum[side], p.finish, row, isFirst, out);
        }
        if (isPart && isFirst) {
          storeStats(state.rowMax[b][side], rowSum[side], out.stats, index);
        }
        const ulong first = index * p.finish.headDim + rows.part * Dim + 2u * at.row;
        MNK_UNROLL
        for (ushort i = 0; i < Dim / 16; ++i) {
          const float2 x = elementsOf(state, b, side, i) * factor;
          if (isPart) {
            storeTwo(reinterpret_cast<device uchar*>(out.sums), uint(kFloat32), flashIsSplit, first + 16u * i, x);
          } else {
            storeTwo(out.into, flashIntoType, flashIsVectorizedInto, first + 16u * i, x);
          }
        }
      }
    }
  }
}

// Stores a simdgroup's elements of `ResultRows` rows from `first` on.
template <uint ResultRows, typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void storeInThreadgroup(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& state, threadgroup float* results, uint stride,
    threadgroup float2* rowStats, PrefillRows rows, uint first, MatrixLane at) {
  MNK_UNROLL
  for (ushort b = 0; b < RowBlocks; ++b) {
    const float2 rowSum = sumOfColumns(state.rowSum[b]);
    const uint r = rows.own + b * 8u;
    if (rows.isUsed && r >= first && r < first + ResultRows) {
      MNK_UNROLL
      for (ushort side = 0; side < 2; ++side) {
        const uint row = r - first + at.column + side;
        const float unit = unitOf(state.unit[b])[side];
        threadgroup float* result = results + row * stride + rows.part * Dim + 2u * at.row;
        MNK_UNROLL
        for (ushort i = 0; i < Dim / 16; ++i) {
          *reinterpret_cast<threadgroup float2*>(result + 16 * i) = elementsOf(state, b, side, i) * unit;
        }
        if (rows.part == 0u && at.row == 0u) {
          rowStats[row] = float2(state.rowMax[b][side], rowSum[side]);
        }
      }
    }
  }
}
// Finishes rows that the inverse rotation needs whole, `ResultRows` at a time, in the memory of the tiles.
template <uint ResultRows, typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void finishRows(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& state, threadgroup float* pool, threadgroup float2* rowStats,
    thread const AttentionOperands& operands, AttentionTokens tokens, PrefillRows rows, MatrixLane at) {
  constant FlashDecodeFinish& p = operands.p.finish;
  constexpr ushort Chunks = Queries != Dim ? kLatentChunks : kPrefillChunks;
  const uint stride = Dim * flashSimdgroupsPerRow + kFlashPrefillRowPadding;
  for (uint first = 0; first < rows.count; first += ResultRows) {
    threadgroup_barrier(mem_flags::mem_threadgroup);  // all simdgroups are done with the tile or previous results
    storeInThreadgroup<ResultRows>(state, pool, stride, rowStats, rows, first, at);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = first + operands.simdgroup; r < min(first + ResultRows, rows.count); r += operands.simdgroups) {
      const uint from = min(operands.lane, p.lanes - 1u) * Chunks;
      MergedRow<Chunks> row;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] = reinterpret_cast<threadgroup const float4*>(pool + (r - first) * stride)[from + i];
      }
      row.rowMax = rowStats[r - first].x;
      row.rowSum = rowStats[r - first].y;
      finishRow<Chunks>(row, p, rowIndex(operands.p, tokens, rows.first + r), operands.lane, operands.out);
    }
  }
}
