// The rows of the prefill kernel, before and after its tiles: queries that need preparation, and results that matrices
// store themselves.
#pragma once
#include "AttentionFinish.h"
#include "AttentionRows.h"
#include "PrefillTile.h"

// Before and after the matrix phase, a lane holds eight elements of a row of up to 256, and sixteen of a latent part.
constant constexpr ushort kPrefillChunks = 2;
constant constexpr ushort kLatentChunks = 4;

template <typename T>
inline void setFour(threadgroup T* into, float4 x) {
  *reinterpret_cast<threadgroup vec<T, 4>*>(into) = vec<T, 4>(T(x.x), T(x.y), T(x.z), T(x.w));
}

// Applies the Hadamard rotation of a quantized cache to a query, normalizes it if T is half, and stores it. For a
// latent cache, the first `latentDim` elements are rotated like values, and the rest like keys.
template <typename T, bool IsLatent>
MNK_SHARED void prepareRow(
    threadgroup T* into, threadgroup float2* stat, device const uchar* queries, ulong start,
    constant FlashDecodeParams& p, uint kvHead, uint latentDim, uint headDim, uint lane, device const float* keyMeans,
    device const float* channelScales, device const float* valueMeans) {
  constexpr ushort Chunks = kPrefillChunks;
  constexpr ushort Latent = IsLatent ? kLatentChunks : 0;
  const uint lanes = lanesOf(headDim, Chunks);
  const bool isHalf = sizeof(T) == 2;
  const float scale = isHalf ? 1.0f : p.queryScale;
  float4 x[Latent + Chunks];
  thread float4* rest = x + Latent;
  loadQuery<Chunks>(rest, queries, start + latentDim, headDim, lanes, lane);
  float bias = rotateQuery<Chunks>(rest, p, kvHead, headDim, lanes, lane, scale, keyMeans, channelScales);
  if (IsLatent) {
    constexpr ushort Own = IsLatent ? kLatentChunks : Chunks;
    const uint latentLanes = latentDim / (4u * Own);
    loadQuery<Own>(x, queries, start, latentDim, latentLanes, lane);
    bias += rotateLatent<Own>(x, p, kvHead, latentDim, latentLanes, lane, scale, valueMeans);
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

// Stores a simdgroup's elements of a row, which need no rotation, as a result or as a part.
template <typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline void storeFromMatrices(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, ushort b, ushort side, float rowSum,
    constant FlashDecodeParams& p, ulong row, uint split, uint part, MatrixLane at, AttentionOutputs out) {
  const float rowMax = rows.rowMax[b][side];
  const bool isFirst = part == 0u && at.row == 0u;
  float factor = unitOf(rows.unit[b])[side];
  if (!flashIsSplit) {
    factor *= finishFactor(rowMax, rowSum, p.finish, row, isFirst, out);
  }
  const bool isPart = flashIsSplit || flashWritesPartials;
  const ulong index = flashIsSplit ? row * p.splits + split : row;
  if (isPart && isFirst) {
    storeStats(rowMax, rowSum, out.stats, index);
  }
  const ulong first = index * p.finish.headDim + part * Dim + 2u * at.row;
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 16; ++i) {
    const float2 x =
        float2(rows.result[b][2 * i].thread_elements()[side], rows.result[b][2 * i + 1].thread_elements()[side]) *
        factor;
    if (isPart) {
      storeTwo(reinterpret_cast<device uchar*>(out.sums), uint(kFloat32), flashIsSplit, first + 16u * i, x);
    } else {
      storeTwo(out.into, flashIntoType, flashIsVectorizedInto, first + 16u * i, x);
    }
  }
}
