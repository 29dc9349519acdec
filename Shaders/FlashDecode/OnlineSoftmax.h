// Online softmax over parts. A part consists of rowMax, the maximum of its scores or at most 8 less, rowSum, the sum of
// 2^(score - rowMax), and the sum of values weighted by these probs. Scores are premultiplied by log2(e), so that probs
// are powers of two.
#pragma once
#include "../Common/Elements.h"
#include "../Common/Lanes.h"
#include "AttentionOperands.h"
#include "CacheTile.h"
#include "FlashDecodeTypes.h"

constant constexpr float kLog2E = 1.44269504088896341f;
constant constexpr float kLn2 = 0.693147180559945309f;

// Stand-ins for minus infinity that arithmetic cannot turn into NaN. The initial rowMax is above the score of a masked
// key, so that its prob is 0 even if no key has been seen yet.
constant constexpr float kMaskedScore = -1.0e30f;
constant constexpr float kInitialRowMax = -0.5e30f;

// Sums N values over the lanes that differ in the bits `Last` to `First` of their index, as a transposing reduction:
// each shuffle halves the number of values that a lane keeps as long as it is even, so that N values take about N
// shuffles. The sums end up in transposedParts parts, in lane order; all lanes of a part hold the same sums.
constexpr ushort transposedParts(ushort n, ushort lanes) {
  ushort parts = 1;
  while (parts < lanes && n % (2 * parts) == 0) {
    parts = ushort(2 * parts);
  }
  return parts;
}

template <ushort N, ushort First, ushort Last>
inline void sumTransposed(thread float* v, uint lane) {
  ushort n = N;
  float sent[N];
  MNK_UNROLL
  for (ushort step = First; step >= Last; step = ushort(step / 2)) {
    const bool isUpper = (lane & step) != 0u;
    const bool isHalved = n % 2 == 0;
    n = isHalved ? ushort(n / 2) : n;
    MNK_UNROLL
    for (ushort i = 0; i < n; ++i) {
      const float a = v[i];
      const float b = isHalved ? v[i + n] : a;
      sent[i] = isUpper ? a : b;
      v[i] = isUpper ? b : a;
    }
    exchangeXor(sent, n, step);
    MNK_UNROLL
    for (ushort i = 0; i < n; ++i) {
      v[i] += sent[i];
    }
  }
}

// A lane's share of an unnormalized result row, with the row's softmax stats.
template <ushort Chunks>
struct MergedRow {
  float4 x[Chunks];
  float rowMax;
  float rowSum;
};

// In threadgroup memory, the stats of all parts come first. Their sums follow at the next 16-byte boundary.
inline uint firstPartSum(uint parts) {
  return (2u * parts + 3u) / 4u * 4u;
}

// Stores a part where mergedInThreadgroup finds it.
template <ushort Chunks>
inline void storeInThreadgroup(
    MergedRow<Chunks> row, threadgroup float* sums, threadgroup float2* stats, uint index, uint headDim, uint first) {
  if (first < headDim) {
    threadgroup float4* own = reinterpret_cast<threadgroup float4*>(sums + index * headDim + first);
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      own[i] = row.x[i];
    }
  }
  if (first == 0u) {
    stats[index] = float2(row.rowMax, row.rowSum);
  }
}

// An empty row, and a function that adds `Count` parts to it: parts `first`, `first + step` and so on, below `parts`.
template <ushort Chunks>
inline MergedRow<Chunks> emptyRow() {
  MergedRow<Chunks> row;
  row.rowMax = kInitialRowMax;
  row.rowSum = 0.0f;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] = float4(0.0f);
  }
  return row;
}
template <ushort Chunks, ushort Count>
inline void addParts(
    thread MergedRow<Chunks>& row, thread const float2* stats, thread const float4* x, uint first, uint step,
    uint parts) {
  float newMax = row.rowMax;
  MNK_UNROLL
  for (ushort j = 0; j < Count; ++j) {
    newMax = max(newMax, stats[j].x);
  }
  const float rescale = fast::exp2(row.rowMax - newMax);
  row.rowMax = newMax;
  row.rowSum *= rescale;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] *= rescale;
  }
  MNK_UNROLL
  for (ushort j = 0; j < Count; ++j) {
    const float weight = first + j * step < parts ? fast::exp2(stats[j].x - newMax) : 0.0f;
    row.rowSum += weight * stats[j].y;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      row.x[i] += weight * x[j * Chunks + i];
    }
  }
}

// Merges the parts of a row from threadgroup memory, which are `sumStride` floats and `statStride` stats apart. `lanes`
// lanes share the row. Several parts are loaded at once, sums before their rescale factors are known, to hide the
// latency of loads. Indices past the end load the last part again with a factor of 0. It may still raise the maximum,
// which does not change the result because all factors are relative to it.
template <ushort Chunks>
MNK_SHARED MergedRow<Chunks> mergedInThreadgroup(
    threadgroup const float* sums, uint sumStride, threadgroup const float2* stats, uint statStride, uint parts,
    uint lanes, uint lane) {
  constexpr ushort Ahead = Chunks > 1 ? 4 : 8;
  MergedRow<Chunks> row = emptyRow<Chunks>();
  const uint own = min(lane, lanes - 1u);  // lanes without elements compute an unused copy
  for (uint part = 0; part < parts; part += Ahead) {
    float2 stat[Ahead];
    float4 x[Ahead * Chunks];
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; ++j) {
      const uint index = min(part + j, parts - 1u);
      stat[j] = stats[index * statStride];
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        x[j * Chunks + i] = reinterpret_cast<threadgroup const float4*>(sums + index * sumStride)[own * Chunks + i];
      }
    }
    addParts<Chunks, Ahead>(row, stat, x, part, 1, parts);
  }
  return row;
}

// Parts of a row that an earlier dispatch stored.
struct StoredParts {
  device const float* sums;
  device const float* stats;
  uint stride;     // vectors from a part to the next
  bool isAligned;  // to 16 bytes
};
// A part without keys adds nothing, whatever its rowMax: callers may pass zeros.
inline float2 statOf(StoredParts from, uint part) {
  const ulong at = 2u * ulong(part) * from.stride;
  const float rowSum = from.stats[at + 1u];
  return float2(rowSum == 0.0f ? kInitialRowMax : from.stats[at], rowSum);
}
inline float4 foursOf(StoredParts from, uint part, uint lane, ushort i, ushort chunks, uint lanes) {
  return fourOf(from.sums + (ulong(part) * from.stride * lanes + lane) * (4u * chunks) + 4u * i, from.isAligned);
}
// Parts that other threadgroups of the same dispatch stored. They are exchanged as atomics, one float at a time, in a
// layout in which neighboring lanes access neighboring floats.
struct AtomicParts {
  device atomic_float* sums;
  device atomic_float* stats;
};
inline float2 statOf(AtomicParts from, uint part) {
  return float2(
      atomic_load_explicit(from.stats + 2u * part, memory_order_relaxed),
      atomic_load_explicit(from.stats + 2u * part + 1u, memory_order_relaxed));
}
inline float4 foursOf(AtomicParts from, uint part, uint lane, ushort i, ushort chunks, uint lanes) {
  device atomic_float* at = from.sums + (part * chunks + i) * (4u * lanes) + lane;
  return float4(
      atomic_load_explicit(at, memory_order_relaxed), atomic_load_explicit(at + lanes, memory_order_relaxed),
      atomic_load_explicit(at + 2u * lanes, memory_order_relaxed),
      atomic_load_explicit(at + 3u * lanes, memory_order_relaxed));
}

// The same for parts `begin`, `begin + step`, and so on in memory.
template <ushort Chunks, ushort Ahead, typename Parts>
MNK_SHARED MergedRow<Chunks> mergedInMemory(Parts from, uint parts, uint lanes, uint lane, uint begin, uint step) {
  MergedRow<Chunks> row = emptyRow<Chunks>();
  const uint own = min(lane, lanes - 1u);
  for (uint part = begin; part < parts; part += Ahead * step) {
    float2 stat[Ahead];
    float4 x[Ahead * Chunks];
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; ++j) {
      const uint index = min(part + j * step, parts - 1u);
      stat[j] = statOf(from, index);
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        x[j * Chunks + i] = foursOf(from, index, own, i, Chunks, lanes);
      }
    }
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; j = ushort(j + 4)) {  // in fours, so that results do not depend on Ahead
      addParts<Chunks, 4>(row, stat + j, x + j * Chunks, part + j * step, step, parts);
    }
  }
  return row;
}

// Finishes a row after its parts are merged: normalizes it, applies the inverse Hadamard rotation of a quantized cache,
// and stores the result.
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
