// Finishes a row after its parts are merged: normalizes it, applies the inverse Hadamard rotation of a quantized cache,
// and stores the result.
#pragma once
#include "../Common/FourElements.h"
#include "AttentionOperands.h"
#include "CacheTile.h"
#include "FlashDecodeTypes.h"
#include "OnlineSoftmax.h"

pipeline_constant(uint, flashIntoType, kFlashDecodeIntoType);
pipeline_constant(bool, flashIsVectorizedInto, kFlashDecodeIsVectorizedInto);
pipeline_constant(bool, flashHasSinks, kFlashDecodeHasSinks);
pipeline_constant(bool, flashHasLogSumExp, kFlashDecodeHasLogSumExp);
pipeline_constant(bool, flashIsSplit, kFlashDecodeIsSplit);
pipeline_constant(bool, flashMergesInKernel, kFlashDecodeMergesInKernel);
pipeline_constant(bool, flashWritesPartials, kFlashDecodeWritesPartials);
pipeline_constant(bool, flashWritesResults, kFlashDecodeWritesResults);
pipeline_constant(bool, flashWritesSums, kFlashDecodeWritesSums);

inline void storeStats(float rowMax, float rowSum, device float* stats, ulong index) {
  stats[2u * index] = rowMax;
  stats[2u * index + 1u] = rowSum;
}

// Stores a row as a part (sums, rowMax, rowSum) in the layout that StoredParts reads; storePartAtomic uses that of
// AtomicParts.
template <ushort Chunks>
MNK_SHARED void storePart(
    MergedRow<Chunks> row, device float* sums, device float* stats, ulong index, uint lanes, uint lane,
    bool isAligned) {
  if (lane < lanes) {
    device float* into = sums + (index * lanes + lane) * (4u * Chunks);
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      setFour(into + 4 * i, isAligned, row.x[i]);
    }
  }
  if (lane == 0u) {
    storeStats(row.rowMax, row.rowSum, stats, index);
  }
}
template <ushort Chunks>
inline void storePartAtomic(
    MergedRow<Chunks> row, device atomic_float* sums, device atomic_float* stats, ulong index, uint lanes, uint lane) {
  if (lane < lanes) {
    device atomic_float* into = sums + index * (4u * Chunks * lanes) + lane;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      atomic_store_explicit(into + 4u * i * lanes, row.x[i].x, memory_order_relaxed);
      atomic_store_explicit(into + (4u * i + 1u) * lanes, row.x[i].y, memory_order_relaxed);
      atomic_store_explicit(into + (4u * i + 2u) * lanes, row.x[i].z, memory_order_relaxed);
      atomic_store_explicit(into + (4u * i + 3u) * lanes, row.x[i].w, memory_order_relaxed);
    }
  }
  if (lane == 0u) {
    atomic_store_explicit(stats + 2u * index, row.rowMax, memory_order_relaxed);
    atomic_store_explicit(stats + 2u * index + 1u, row.rowSum, memory_order_relaxed);
  }
}

// The factor that normalizes a row, with its sink; partials keep their sums. Stores the row's log-sum-exp if `isFirst`.
MNK_SHARED float finishFactor(
    float rowMax, float rowSum, constant FlashDecodeFinish& p, ulong index, bool isFirst, AttentionOutputs out) {
  float factor = 1.0f;
  float total = rowSum;
  if (flashHasSinks) {
    const float sink = out.sinks[uint(index % p.heads)] * kLog2E;
    const float newMax = max(rowMax, sink);
    factor = fast::exp2(rowMax - newMax);
    total = total * factor + fast::exp2(sink - newMax);
    rowMax = newMax;
  }
  if (flashHasLogSumExp && isFirst) {
    out.logSumExp[index] = total == 0.0f ? as_type<float>(0xff800000u) : (rowMax + precise::log2(total)) * kLn2;
  }
  if (!flashWritesPartials) {
    factor = total == 0.0f ? 0.0f : factor / total;
  }
  return factor;
}

// The lanes of a simdgroup hold a row: each lane holds `Chunks` float4s, starting at element lane * 4 * Chunks. All
// lanes must call this.
template <ushort Chunks>
MNK_SHARED void finishRow(
    MergedRow<Chunks> row, constant FlashDecodeFinish& p, ulong index, uint lane, AttentionOutputs out) {
  const uint first = lane * (4u * Chunks);
  const float factor = finishFactor(row.rowMax, row.rowSum, p, index, lane == 0u, out);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] *= factor;
  }
  if (kvHasQuantizedValues && !kvIsUnrotated) {
    hadamardRotate<Chunks>(row.x, kvValueDim, lanesOf(kvValueDim, Chunks), lane, p.inverseRoot);
    if (first < p.headDim) {
      const uint head = uint(index % p.heads);
      const ulong headBase = ulong(head / (p.heads / p.kvHeads)) * p.headDim + first;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] = flipped(row.x[i], codecSigns(p.headDim, first + 4u * i));
        if (kvHasValueMeans) {
          row.x[i] += fourFloats(out.valueMeans, headBase + 4u * i) * (row.rowSum * factor);
        }
      }
    }
  }
  if (flashWritesPartials) {
    storePart<Chunks>(row, out.sums, out.stats, index, p.lanes, lane, false);
  } else if (first < p.headDim) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      storeFour(out.into, flashIntoType, flashIsVectorizedInto, index * p.headDim + first + 4u * i, row.x[i]);
    }
  }
}

// Finishes a row, or stores it as the part of a split that another dispatch or the last threadgroup merges.
template <ushort Chunks>
MNK_SHARED void finishPart(MergedRow<Chunks> row, thread const AttentionOperands& operands, ulong index) {
  constant FlashDecodeParams& p = operands.p;
  const uint lane = operands.lane;
  const ulong part = index * p.splits + operands.place.x;
  if (flashMergesInKernel) {
    storePartAtomic<Chunks>(row, operands.partSums, operands.partStats, part, p.finish.lanes, lane);
  } else if (flashIsSplit) {
    storePart<Chunks>(
        row, operands.out.sums, operands.out.stats, part, p.finish.lanes, lane, true);  // scratch memory is aligned
  } else {
    finishRow<Chunks>(row, p.finish, index, lane, operands.out);
  }
}
