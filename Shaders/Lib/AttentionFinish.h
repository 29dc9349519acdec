// What becomes of a row when all its parts are merged: the division, the way back from the codec's domain, the result.
#pragma once
#include "../Types/FlashDecodeTypes.h"
#include "CachePieces.h"
#include "FourElements.h"
#include "OnlineSoftmax.h"

pipeline_constant(uint, flashIntoType, kFlashDecodeIntoType);
pipeline_constant(bool, flashIsVectorizedInto, kFlashDecodeIsVectorizedInto);
pipeline_constant(bool, flashHasSinks, kFlashDecodeHasSinks);
pipeline_constant(bool, flashHasLogSumExp, kFlashDecodeHasLogSumExp);
pipeline_constant(bool, flashIsSplit, kFlashDecodeIsSplit);
pipeline_constant(bool, flashMergesTogether, kFlashDecodeMergesTogether);
pipeline_constant(bool, flashWritesPartials, kFlashDecodeWritesPartials);
pipeline_constant(bool, flashWritesResults, kFlashDecodeWritesResults);
pipeline_constant(bool, flashWritesSums, kFlashDecodeWritesSums);

// Stores a row as a part: sums, largest score and sum of weights.
template <ushort Chunks, typename Number>
inline void storePart(
    MergedRow<Chunks> row, device Number* sums, device Number* stats, ulong index, uint headDim, uint first) {
  if (first < headDim) {
    device Number* into = sums + index * headDim + first;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      putPart(into + 4 * i, row.x[i].x);
      putPart(into + 4 * i + 1, row.x[i].y);
      putPart(into + 4 * i + 2, row.x[i].z);
      putPart(into + 4 * i + 3, row.x[i].w);
    }
  }
  if (first == 0u) {
    putPart(stats + 2u * index, row.largest);
    putPart(stats + 2u * index + 1u, row.sum);
  }
}

// The lanes of a simdgroup hold a row, each `Chunks` float4s from element lane * 4 * Chunks on; all lanes must take
// part.
template <ushort Chunks>
inline void finishRow(
    MergedRow<Chunks> row, constant FlashDecodeFinish& p, ulong index, uint lane, device const float* valueMeans,
    device const float* sinks, device uchar* into, device float* logSumExp, device float* sums, device float* stats) {
  const uint first = lane * (4u * Chunks);
  const uint head = uint(index % p.heads);
  float factor = 1.0f;
  float largest = row.largest;
  float total = row.sum;
  if (flashHasSinks) {
    const float sink = sinks[head] * kLog2E;
    largest = max(largest, sink);
    factor = fast::exp2(row.largest - largest);
    total = total * factor + fast::exp2(sink - largest);
  }
  if (flashHasLogSumExp && lane == 0u) {
    logSumExp[index] = total == 0.0f ? as_type<float>(0xff800000u) : (largest + precise::log2(total)) * kLn2;
  }
  if (!flashWritesPartials) {
    factor = total == 0.0f ? 0.0f : factor / total;
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] *= factor;
  }
  if (flashIsCoded) {
    turned<Chunks>(row.x, p.lanes, lane, p.inverseRoot);
    if (first < p.headDim) {
      const ulong ofHead = ulong(head / (p.heads / p.kvHeads)) * p.headDim + first;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] = flipped(row.x[i], codecSigns(p.headDim, first + 4u * i));
        if (kvHasValueMeans) {
          row.x[i] += fourFloats(valueMeans, ofHead + 4u * i) * (row.sum * factor);
        }
      }
    }
  }
  if (flashWritesPartials) {
    storePart<Chunks, float>(row, sums, stats, index, p.headDim, first);
  } else if (first < p.headDim) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      storeFour(into, flashIntoType, flashIsVectorizedInto, index * p.headDim + first + 4u * i, row.x[i]);
    }
  }
}

// Finishes a row, or stores it as the part of a split, for another dispatch or another threadgroup to merge.
template <ushort Chunks>
inline void finishPart(
    MergedRow<Chunks> row, constant FlashDecodeParams& p, ulong index, uint split, uint lane,
    device const float* valueMeans, device const float* sinks, device uchar* into, device float* logSumExp,
    device float* sums, device float* stats, device atomic_float* partSums, device atomic_float* partStats) {
  const ulong part = index * p.splits + split;
  const uint first = lane * (4u * Chunks);
  if (flashMergesTogether) {
    storePart<Chunks, atomic_float>(row, partSums, partStats, part, p.finish.headDim, first);
  } else if (flashIsSplit) {
    storePart<Chunks, float>(row, sums, stats, part, p.finish.headDim, first);
  } else {
    finishRow<Chunks>(row, p.finish, index, lane, valueMeans, sinks, into, logSumExp, sums, stats);
  }
}
