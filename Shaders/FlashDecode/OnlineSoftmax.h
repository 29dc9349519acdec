// A softmax that is built up from parts. A part is the largest of its scores, the sum of 2^(score - largest), and the
// sum of values with these weights. Scores count in units of 1 / log2(e), so that weights are powers of two.
#pragma once
#include "../Common/Lanes.h"

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

// A lane's share of a row of results, and what it is to be divided by.
template <ushort Chunks>
struct MergedRow {
  float4 x[Chunks];
  float rowMax;
  float rowSum;
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
    stats[index] = float2(row.rowMax, row.rowSum);
  }
}

// A row without parts, and `Count` more parts of it: those from `first` on, `step` apart, of which there are `parts`.
template <ushort Chunks>
inline MergedRow<Chunks> emptyRow() {
  MergedRow<Chunks> row;
  row.rowMax = kNoLargest;
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

// Merges the parts of a row from threadgroup memory, `sumStride` floats and `statStride` stats apart. `lanes` lanes
// share the row. Several parts are loaded at once, and sums before their weights are known, because each load takes
// long. Past the last part it is loaded again and weighs nothing; that it may raise the largest, with which all weights
// are compared in the end, changes no result.
template <ushort Chunks>
MNK_SHARED MergedRow<Chunks> mergedInThreadgroup(
    threadgroup const float* sums, uint sumStride, threadgroup const float2* stats, uint statStride, uint parts,
    uint lanes, uint lane) {
  constexpr ushort Ahead = Chunks > 1 ? 4 : 8;
  MergedRow<Chunks> row = emptyRow<Chunks>();
  const uint own = min(lane, lanes - 1u);  // a lane that has no elements computes what is not read
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

// Where the parts of a row are found in memory: where a dispatch before has stored them,
struct StoredParts {
  device const float* sums;
  device const float* stats;
  uint stride;  // vectors from a part to the next
};
inline float2 statOf(StoredParts from, uint part) {
  const ulong at = 2u * ulong(part) * from.stride;
  return float2(from.stats[at], from.stats[at + 1u]);
}
inline float4 foursOf(StoredParts from, uint part, uint lane, ushort i, ushort chunks, uint lanes) {
  device const float* at = from.sums + (ulong(part) * from.stride * lanes + lane) * (4u * chunks) + 4u * i;
  return float4(at[0], at[1], at[2], at[3]);
}
// or where threadgroups of the same dispatch have. What they exchange is atomic, and one float at a time: neighboring
// lanes have neighboring floats.
struct ExchangedParts {
  device atomic_float* sums;
  device atomic_float* stats;
};
inline float2 statOf(ExchangedParts from, uint part) {
  return float2(
      atomic_load_explicit(from.stats + 2u * part, memory_order_relaxed),
      atomic_load_explicit(from.stats + 2u * part + 1u, memory_order_relaxed));
}
inline float4 foursOf(ExchangedParts from, uint part, uint lane, ushort i, ushort chunks, uint lanes) {
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
    for (ushort j = 0; j < Ahead; j = ushort(j + 4)) {  // by fours, so that bits do not depend on how many are loaded
      addParts<Chunks, 4>(row, stat + j, x + j * Chunks, part + j * step, step, parts);
    }
  }
  return row;
}
