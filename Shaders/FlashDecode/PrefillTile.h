// The phases of a tile of keys and values in the prefill kernel: score, values. PrefillMemory.h has those that load it,
// and MatrixSoftmax.h those in between.
#pragma once
#include "MatrixSoftmax.h"
#include "PrefillMemory.h"

// The lane that holds matrix row `row` of the columns that `lane` holds.
inline ushort laneOfRow(uint lane, uint row) {
  return ushort(
      flashHasRowMajorMatrices ? row * 4u + (lane & 3u) : (lane & 9u) | ((row & 3u) << 1) | ((row & 4u) << 2));
}

// Four neighboring elements of a row of queries.
inline half4 fourAt(device const half* from) {
  return *reinterpret_cast<device const half4*>(from);
}
template <typename T>
inline vec<T, 4> fourAt(threadgroup const T* from) {
  return *reinterpret_cast<threadgroup const vec<T, 4>*>(from);
}

// Sets `Count` elements of the queries of a block of rows, from element `First` on, to elements of the two rows that a
// lane has. Of a group of sixteen elements, a matrix has those that make keyMatrices load four neighboring ones.
template <ushort First, ushort Count, typename T, ushort Queries, ushort Dim, ushort RowBlocks, typename Pointer>
inline void setQueries(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, ushort b, Pointer left, Pointer right, MatrixLane at) {
  const bool isOdd = at.row % 2u != 0u;
  MNK_UNROLL
  for (ushort i = 0; i < Count / 16; ++i) {
    const auto x = fourAt(left + 16u * i + at.row / 2u * 4u);
    const auto y = fourAt(right + 16u * i + at.row / 2u * 4u);
    rows.query[b][First / 8 + 2 * i] = matrixOf(vec<T, 2>(T(isOdd ? x.y : x.x), T(isOdd ? y.y : y.x)));
    rows.query[b][First / 8 + 2 * i + 1] = matrixOf(vec<T, 2>(T(isOdd ? x.w : x.z), T(isOdd ? y.w : y.z)));
  }
}

// Where a lane's elements of the first matrix of keys start. Those of other matrices are at distances that are the same
// for all lanes, which load instructions encode.
template <ushort Pairing>
inline uint startOfKeys(uint stride, MatrixLane at) {
  return keyOfRow(at.row) * stride + 2u * vectorsOfUnit(Pairing) * at.column;
}
// The same for values: for both columns if they are in pairs, and otherwise for the column `at.column + side`.
template <bool ArePairs>
inline uint startOfValues(uint stride, MatrixLane at, ushort side) {
  return ArePairs ? at.column / 2u * stride + 4u * at.row : keyOfRow(at.column + side) * stride + 2u * at.row;
}

// Matrices 2 * i and 2 * i + 1 of a block of eight keys, or of two blocks of which they are pairs. Those of values have
// even elements and odd elements of a group of sixteen.
template <typename T>
inline void keyMatrices(
    thread simdgroup_matrix<T, 8, 8>* two, threadgroup const T* from, uint stride, ushort block, ushort i) {
  const vec<T, 4> x = fourAt(from + block * 8u * stride + 16u * i);
  two[0] = matrixOf(vec<T, 2>(x.x, x.y));
  two[1] = matrixOf(vec<T, 2>(x.z, x.w));
}
inline void pairMatrices(
    thread simdgroup_half8x8* first, thread simdgroup_half8x8* second, threadgroup const half* from) {
  const uint4 x = *reinterpret_cast<threadgroup const uint4*>(from);
  first[0] = matrixOf(as_type<half2>(x.x));
  second[0] = matrixOf(as_type<half2>(x.y));
  first[1] = matrixOf(as_type<half2>(x.z));
  second[1] = matrixOf(as_type<half2>(x.w));
}
inline void pairMatrices(
    thread simdgroup_float8x8* first, thread simdgroup_float8x8* second, threadgroup const float* from) {
  const float4 x = fourAt(from);
  const float4 y = fourAt(from + 4);
  first[0] = matrixOf(float2(x.x, x.y));
  second[0] = matrixOf(float2(x.z, x.w));
  first[1] = matrixOf(float2(y.x, y.y));
  second[1] = matrixOf(float2(y.z, y.w));
}
template <bool ArePairs, typename T>
inline void valueMatrices(
    thread simdgroup_matrix<T, 8, 8>* two, threadgroup const T* left, threadgroup const T* right, uint stride,
    ushort block, ushort i) {
  if (ArePairs) {
    const vec<T, 4> x = fourAt(left + block * 4u * stride + 32u * i);
    two[0] = matrixOf(vec<T, 2>(x.x, x.y));
    two[1] = matrixOf(vec<T, 2>(x.z, x.w));
    return;
  }
  const uint offset = block * 8u * stride + 16u * i;
  const vec<T, 2> x = *reinterpret_cast<threadgroup const vec<T, 2>*>(left + offset);
  const vec<T, 2> y = *reinterpret_cast<threadgroup const vec<T, 2>*>(right + offset);
  two[0] = matrixOf(vec<T, 2>(x.x, y.x));
  two[1] = matrixOf(vec<T, 2>(x.y, y.y));
}

// Products of keys and the `Count` elements of queries from `First` on, multiplied by the scales of the keys if they
// are quantized.
template <
    ushort First, ushort Count, ushort Blocks, ushort Pairing, typename T, ushort Queries, ushort Dim, ushort RowBlocks>
MNK_SHARED MatrixScores<RowBlocks, Blocks> multiplyKeys(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, threadgroup const T* from, uint stride,
    threadgroup const float* scales, bool areQuantized) {
  simdgroup_float8x8 sums[RowBlocks][Blocks];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    sums[i / Blocks][i % Blocks] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Count / 16; ++i) {
    simdgroup_matrix<T, 8, 8> key[Blocks][2];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; n = ushort(n + vectorsOfUnit(Pairing))) {
      if (Pairing == kKeyPairs) {
        pairMatrices(key[n], key[n + 1], from + n / 2 * 8u * stride + 32u * i);
      } else {
        keyMatrices(key[n], from, stride, n, i);
      }
    }
    MNK_UNROLL
    for (ushort j = 0; j < 2; ++j) {
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        MNK_UNROLL
        for (ushort n = 0; n < Blocks; ++n) {
          simdgroup_multiply_accumulate(sums[b][n], key[n][j], rows.query[b][First / 8 + 2 * i + j], sums[b][n]);
        }
      }
    }
  }
  MatrixScores<RowBlocks, Blocks> products;
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    const float scale = areQuantized ? scales[n * 8u] : 1.0f;
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      products.of[b][n] = float2(sums[b][n].thread_elements()[0], sums[b][n].thread_elements()[1]) * scale;
    }
  }
  return products;
}

inline bool isFiniteBits(float x) {
  return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u;
}

template <bool ArePairs, typename T, ushort Queries, ushort Dim, ushort RowBlocks, ushort Blocks>
MNK_SHARED void multiplyValues(
    thread MatrixScores<RowBlocks, Blocks>& probs, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    threadgroup const T* left, threadgroup const T* right, uint stride) {
  simdgroup_matrix<T, 8, 8> prob[RowBlocks][Blocks];
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    const float2 x = probs.of[i / Blocks][i % Blocks] * perUnit(rows.unit[i / Blocks]);
    prob[i / Blocks][i % Blocks] = matrixOf(vec<T, 2>(T(x.x), T(x.y)));
  }
  MNK_UNROLL
  for (ushort i = 0; i < Dim / 16; ++i) {
    simdgroup_matrix<T, 8, 8> value[Blocks][2];
    MNK_UNROLL
    for (ushort n = 0; n < Blocks; ++n) {
      valueMatrices<ArePairs>(value[n], left, right, stride, n, i);
    }
    MNK_UNROLL
    for (ushort b = 0; b < RowBlocks; ++b) {
      MNK_UNROLL
      for (ushort n = 0; n < Blocks; ++n) {
        MNK_UNROLL
        for (ushort j = 0; j < 2; ++j) {
          simdgroup_multiply_accumulate(rows.result[b][2 * i + j], value[n][j], prob[b][n], rows.result[b][2 * i + j]);
        }
      }
    }
  }
}

// Whether all values of a tile are finite.
template <ushort Dim, ushort Blocks, bool ArePairs, typename T>
MNK_SHARED bool areFinite(threadgroup const T* left, threadgroup const T* right, uint stride) {
  bool isFinite = true;
  for (ushort i = 0; i < Dim / 16; ++i) {
    for (ushort n = 0; n < Blocks; ++n) {
      simdgroup_matrix<T, 8, 8> two[2];
      valueMatrices<ArePairs>(two, left, right, stride, n, i);
      MNK_UNROLL
      for (ushort j = 0; j < 4; ++j) {
        isFinite = isFinite && isFiniteBits(float(two[j / 2].thread_elements()[j % 2]));
      }
    }
  }
  return !simd_any(!isFinite);
}

// Like multiplyValues, if values that some rows do not see are infinite or NaN. 0 * NaN is NaN, so values with prob 0
// are skipped, key by key.
template <bool ArePairs, typename T, ushort Queries, ushort Dim, ushort RowBlocks, ushort Blocks>
MNK_SHARED void addSeenValues(
    thread MatrixScores<RowBlocks, Blocks>& probs, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    threadgroup const T* values, uint stride, MatrixLane at, uint lane) {
  constexpr ushort Vectors = ArePairs ? 2 : 1;
  MNK_UNROLL
  for (ushort n = 0; n < Blocks; ++n) {
    for (uint row = 0; row < 8u; ++row) {
      threadgroup const T* value =
          ArePairs ? values + (n * 4u + row / 2u) * stride + row % 2u : values + (n * 8u + keyOfRow(row)) * stride;
      MNK_UNROLL
      for (ushort b = 0; b < RowBlocks; ++b) {
        const float2 prob = simd_shuffle(probs.of[b][n], laneOfRow(lane, row)) * perUnit(rows.unit[b]);
        MNK_UNROLL
        for (ushort i = 0; i < Dim / 8; ++i) {
          const float x = float(value[(i / 2 * 16u + i % 2 + 2u * at.row) * Vectors]);
          MNK_UNROLL
          for (ushort side = 0; side < 2; ++side) {
            rows.result[b][i].thread_elements()[side] += prob[side] == 0.0f ? 0.0f : prob[side] * x;
          }
        }
      }
    }
  }
}

// Adds values to results, weighted by probs. If `mayHaveSpecials`, some rows do not see some of the values, and these
// may be infinite or NaN.
template <bool ArePairs, typename T, ushort Queries, ushort Dim, ushort RowBlocks, ushort Blocks>
inline void accumulateValues(
    thread MatrixScores<RowBlocks, Blocks>& probs, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    threadgroup const T* values, uint stride, bool mayHaveSpecials, MatrixLane at, uint lane) {
  threadgroup const T* left = values + startOfValues<ArePairs>(stride, at, 0);
  threadgroup const T* right = values + startOfValues<ArePairs>(stride, at, 1);
  if (mayHaveSpecials && !areFinite<Dim, Blocks, ArePairs>(left, right, stride)) {
    addSeenValues<ArePairs>(probs, rows, values, stride, at, lane);
  } else {
    multiplyValues<ArePairs>(probs, rows, left, right, stride);
  }
}

// Where the scales of a lane's values start, of its simdgroup's part of their elements.
template <ushort Dim, ushort Blocks>
inline uint startOfScales(uint part, MatrixLane at) {
  return part * Dim / kScaledElements * (8u * Blocks) + keyOfRow(at.row);
}

// Products of a simdgroup's part of the queries with keys. In a latent cache, values are keys too. If simdgroups share
// rows, stores the products for completeScores.
template <ushort KeyPairing, ushort Blocks, typename T, ushort Queries, ushort Dim, ushort RowBlocks>
inline MatrixScores<RowBlocks, Blocks> scoreTile(
    thread MatrixRows<T, Queries, Dim, RowBlocks>& rows, threadgroup const T* keys, uint keyStride,
    threadgroup const float* keyScales, threadgroup const T* values, uint valueStride,
    threadgroup const float* valueScales, threadgroup float2* parts, uint part, uint lane) {
  constexpr bool IsLatent = Queries != Dim;
  constexpr ushort KeyDim = IsLatent ? Queries - Dim : Dim;
  MatrixScores<RowBlocks, Blocks> scores =
      multiplyKeys<Queries - KeyDim, KeyDim, Blocks, KeyPairing>(rows, keys, keyStride, keyScales, kvHasQuantizedKeys);
  if (IsLatent) {
    const MatrixScores<RowBlocks, Blocks> rest =
        multiplyKeys<0, Dim, Blocks, kSingleVectors>(rows, values, valueStride, valueScales, kvHasQuantizedValues);
    MNK_UNROLL
    for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
      scores.of[i / Blocks][i % Blocks] += rest.of[i / Blocks][i % Blocks];
    }
  }
  if (flashSimdgroupsPerRow > 1u) {
    MNK_UNROLL
    for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
      parts[(part * (RowBlocks * Blocks) + i) * 32u + lane] = scores.of[i / Blocks][i % Blocks];
    }
  }
  return scores;
}

// Sums the products that the simdgroups sharing these rows have stored, and applies the scales and the biases of their
// queries. All of them sum in the same order and so get bit-identical scores.
template <typename T, ushort Queries, ushort Dim, ushort Blocks, ushort RowBlocks>
inline void completeScores(
    thread MatrixScores<RowBlocks, Blocks>& scores, thread MatrixRows<T, Queries, Dim, RowBlocks>& rows,
    threadgroup const float2* parts, uint lane) {
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    thread float2& score = scores.of[i / Blocks][i % Blocks];
    if (flashSimdgroupsPerRow > 1u) {
      score = parts[i * 32u + lane];
      for (uint part = 1; part < flashSimdgroupsPerRow; ++part) {
        score += parts[(part * (RowBlocks * Blocks) + i) * 32u + lane];
      }
    }
    score *= rows.scoreScale[i / Blocks];
    if (hasBias(Queries != Dim)) {
      score += rows.bias[i / Blocks];
    }
  }
}
