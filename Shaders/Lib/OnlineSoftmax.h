// A softmax that is built up from parts. A part is the largest of its scores, the sum of 2^(score - largest), and the
// sum of values with these weights. Scores count in units of 1 / log2(e), so that weights are powers of two.
#pragma once
#include "Words.h"

constant constexpr float kLog2E = 1.44269504088896341f;
constant constexpr float kLn2 = 0.693147180559945309f;

// Stand-ins for minus infinity that arithmetic cannot turn into NaN. A largest score starts above that of a key that
// does not count, whose weight is then 0 even while nothing has been seen.
constant constexpr float kNoScore = -1.0e30f;
constant constexpr float kNoLargest = -0.5e30f;

// Sums values over the lanes that differ in the bits from `Last` to `First` of their number, transposed: each exchange
// halves what a lane keeps while there is an even number left, so that N values take about N exchanges. In the end the
// sums lie in transposedParts, in the order of lanes, each held by as many neighbors as there are lanes for a part.
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
  MNK_UNROLL
  for (ushort step = First; step >= Last; step = ushort(step / 2)) {
    const bool isUpper = (lane & step) != 0u;
    if (n % 8 == 0) {
      n = ushort(n / 2);
      MNK_UNROLL
      for (ushort i = 0; i < n; i = ushort(i + 4)) {
        const float4 a = float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
        const float4 b = float4(v[i + n], v[i + n + 1], v[i + n + 2], v[i + n + 3]);
        const float4 sum = (isUpper ? b : a) + simd_shuffle_xor(isUpper ? a : b, step);
        v[i] = sum.x;
        v[i + 1] = sum.y;
        v[i + 2] = sum.z;
        v[i + 3] = sum.w;
      }
    } else if (n % 4 == 0) {
      n = ushort(n / 2);
      MNK_UNROLL
      for (ushort i = 0; i < n; i = ushort(i + 2)) {
        const float2 a = float2(v[i], v[i + 1]);
        const float2 b = float2(v[i + n], v[i + n + 1]);
        const float2 sum = (isUpper ? b : a) + simd_shuffle_xor(isUpper ? a : b, step);
        v[i] = sum.x;
        v[i + 1] = sum.y;
      }
    } else if (n % 2 == 0) {
      n = ushort(n / 2);
      MNK_UNROLL
      for (ushort i = 0; i < n; ++i) {
        const float a = v[i];
        const float b = v[i + n];
        v[i] = (isUpper ? b : a) + simd_shuffle_xor(isUpper ? a : b, step);
      }
    } else {
      MNK_UNROLL
      for (ushort i = 0; i < n; ++i) {
        v[i] += simd_shuffle_xor(v[i], step);
      }
    }
  }
}

// Over lanes that differ in the bits from `first` to below `end`.
inline float largestOver(float x, ushort first, ushort end) {
  for (ushort step = first; step < end; step = ushort(step * 2)) {
    x = max(x, simd_shuffle_xor(x, step));
  }
  return x;
}
inline float sumOver(float x, ushort first, ushort end) {
  for (ushort step = first; step < end; step = ushort(step * 2)) {
    x += simd_shuffle_xor(x, step);
  }
  return x;
}

// A lane's share of a row of results, and what it is to be divided by.
template <ushort Chunks>
struct MergedRow {
  float4 x[Chunks];
  float largest;
  float sum;
};

// In threadgroup memory the stats of parts come first; then, where four floats can be loaded at once, their sums.
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
    stats[index] = float2(row.largest, row.sum);
  }
}

// Merges the parts of a row from threadgroup memory. `first` is the lane's first element; where it is `headDim` or more
// the lane has none.
template <ushort Chunks>
inline MergedRow<Chunks> mergedInThreadgroup(
    threadgroup const float* sums, threadgroup const float2* stats, uint parts, uint partStride, uint headDim,
    uint first) {
  MergedRow<Chunks> row;
  row.largest = kNoLargest;
  row.sum = 0.0f;
  for (uint part = 0; part < parts; ++part) {
    row.largest = max(row.largest, stats[part * partStride].x);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] = float4(0.0f);
  }
  for (uint part = 0; part < parts; ++part) {
    const float2 stat = stats[part * partStride];
    const float weight = fast::exp2(stat.x - row.largest);
    row.sum += weight * stat.y;
    if (first < headDim) {
      threadgroup const float4* from =
          reinterpret_cast<threadgroup const float4*>(sums + part * partStride * headDim + first);
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        row.x[i] += weight * from[i];
      }
    }
  }
  return row;
}

// A number of a part in memory. What threadgroups of one dispatch exchange is atomic.
inline float partAt(device const float* from) {
  return *from;
}
inline float partAt(device atomic_float* from) {
  return atomic_load_explicit(from, memory_order_relaxed);
}
inline void putPart(device float* into, float x) {
  *into = x;
}
inline void putPart(device atomic_float* into, float x) {
  atomic_store_explicit(into, x, memory_order_relaxed);
}

// The same from memory, for parts `begin`, `begin + step`, and so on. Several parts are loaded at once, and sums before
// their weights are known, because each load takes long. Past the last part it is loaded again and adds nothing; that
// it may raise the largest, with which all weights are compared in the end, changes no result.
template <ushort Chunks, typename Number>
inline MergedRow<Chunks> mergedInMemory(
    device Number* sums, device Number* stats, uint parts, uint partStride, uint headDim, uint first, uint begin,
    uint step) {
  constexpr ushort Ahead = 4;
  MergedRow<Chunks> row;
  row.largest = kNoLargest;
  row.sum = 0.0f;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    row.x[i] = float4(0.0f);
  }
  const uint element = min(first, headDim - 4u * Chunks);  // a lane that has none computes what nobody reads
  for (uint part = begin; part < parts; part += Ahead * step) {
    float2 stat[Ahead];
    float4 x[Ahead][Chunks];
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; ++j) {
      const ulong index = ulong(min(part + j * step, parts - 1u)) * partStride;
      stat[j] = float2(partAt(stats + 2u * index), partAt(stats + 2u * index + 1u));
      device Number* from = sums + index * headDim + element;
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        x[j][i] =
            float4(partAt(from + 4 * i), partAt(from + 4 * i + 1), partAt(from + 4 * i + 2), partAt(from + 4 * i + 3));
      }
    }
    float largest = row.largest;
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; ++j) {
      largest = max(largest, stat[j].x);
    }
    const float fade = fast::exp2(row.largest - largest);
    row.largest = largest;
    row.sum *= fade;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      row.x[i] *= fade;
    }
    MNK_UNROLL
    for (ushort j = 0; j < Ahead; ++j) {
      if (part + j * step < parts) {
        const float weight = fast::exp2(stat[j].x - largest);
        row.sum += weight * stat[j].y;
        MNK_UNROLL
        for (ushort i = 0; i < Chunks; ++i) {
          row.x[i] += weight * x[j][i];
        }
      }
    }
  }
  return row;
}
