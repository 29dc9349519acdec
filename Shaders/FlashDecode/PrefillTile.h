// The phases of a tile of keys and values in the prefill kernel: load, score, values. MatrixSoftmax.h has those in
// between. A tile is in threadgroup memory, as elements of type T (f16 or f32). All simdgroups load it together, and
// each uses it for its own rows.
//   keys    [pair][dim / 2][2][2]: pairs of elements of the keys that are in the same row of two matrices alternate
//   values  [pair][dim][2]: elements of the values in the two columns that a lane has of a matrix alternate
// `flashSimdgroupsPerRow` simdgroups share a row of more than 128 elements: each has a part of its query and of its
// result. In a latent cache, a key is the value followed by `Extra` elements per simdgroup. Its values serve as keys
// too, so neither are in pairs; nor are the keys of a tile that has only one block of eight.
#pragma once
#include "MatrixSoftmax.h"

pipeline_constant(uint, flashSimdgroupsPerRow, kFlashDecodeSimdgroupsPerRow);

// Elements of a vector that share a scale.
constant constexpr uint kScaledElements = 256;

// The key of a block of eight that a matrix row or column represents. In this order, the keys of neighboring rows and
// those of every other column lie in different banks.
inline uint keyOfRow(uint index) {
  return index ^ (index >> 2);
}

// The lane that holds matrix row `row` of the columns that `lane` holds.
inline ushort laneOfRow(uint lane, uint row) {
  return ushort(
      flashHasRowMajorMatrices ? row * 4u + (lane & 3u) : (lane & 9u) | ((row & 3u) << 1) | ((row & 4u) << 2));
}

inline void storeEight(threadgroup half* into, thread const half* x) {
  *reinterpret_cast<threadgroup uint4*>(into) = uint4(
      as_type<uint>(half2(x[0], x[1])), as_type<uint>(half2(x[2], x[3])), as_type<uint>(half2(x[4], x[5])),
      as_type<uint>(half2(x[6], x[7])));
}
inline void storeEight(threadgroup float* into, thread const float* x) {
  reinterpret_cast<threadgroup float4*>(into)[0] = float4(x[0], x[1], x[2], x[3]);
  reinterpret_cast<threadgroup float4*>(into)[1] = float4(x[4], x[5], x[6], x[7]);
}

// Vectors of a tile are single, or in pairs: the elements of both alternate, or two elements of each.
constant constexpr ushort kSingleVectors = 0;
constant constexpr ushort kValuePairs = 1;
constant constexpr ushort kKeyPairs = 2;
constexpr ushort vectorsOfUnit(ushort pairing) {
  return pairing == kSingleVectors ? 1 : 2;
}

// Threads load keys, or values, in units: eight elements of a vector, or of both vectors of a pair. The key of a
// vector, or of one side of a pair, relative to the tile's first.
template <ushort Pairing>
inline uint keyOfVector(uint vector, ushort side) {
  return Pairing == kValuePairs ? vector / 4u * 8u + keyOfRow(vector % 4u * 2u + side)
         : Pairing == kKeyPairs ? vector / 8u * 16u + side * 8u + vector % 8u
                                : vector;
}

// Loads a unit without waiting for it. Elements of keys from `end` on are 0.
template <ushort Keys, ushort Pairing>
inline void fetchUnit(
    thread CachePiece<8>* pieces, CacheVectors from, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end, uint unit) {
  const uint vector = unit / (from.headDim / 8u);
  MNK_UNROLL
  for (ushort side = 0; side < vectorsOfUnit(Pairing); ++side) {
    const uint key = keyOfVector<Pairing>(vector, side);
    CachePiece<8> piece = {};
    if (key < Keys && base + key < end) {
      loadPiece(piece, from, vectorOfKey(p, sequence, base + key), unit % (from.headDim / 8u) * 8u);
    }
    pieces[side] = piece;
  }
}
// Stores a unit in a tile, whose vectors or pairs are `stride` elements apart, and the scales of codes, `Keys` for each
// block of kScaledElements.
template <ushort Keys, ushort Pairing, typename T>
inline void storeUnit(
    threadgroup T* tile, uint stride, threadgroup float* scales, threadgroup const float* levels,
    thread const CachePiece<8>* pieces, CacheVectors from, uint unit) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  constexpr ushort Together = Pairing == kSingleVectors ? 8 : Pairing;  // elements of a vector that lie side by side
  const uint vector = unit / (from.headDim / 8u);
  const uint first = unit % (from.headDim / 8u) * 8u;
  T x[8 * Vectors];
  MNK_UNROLL
  for (ushort side = 0; side < Vectors; ++side) {
    MNK_UNROLL
    for (ushort chunk = 0; chunk < 2; ++chunk) {
      const floats<4> four = floatsOfPiece<4>(pieces[side], chunk, from.bits, levels);
      MNK_UNROLL
      for (ushort i = 0; i < 4; ++i) {
        const ushort element = 4 * chunk + i;
        x[element / Together * (Vectors * Together) + side * Together + element % Together] = T(four[i]);
      }
    }
    if (from.bits != 0u && first % kScaledElements == 0u) {
      scales[first / kScaledElements * Keys + keyOfVector<Pairing>(vector, side)] =
          codebookScale(pieces[side].scale, from);
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < Vectors; ++i) {
    storeEight(tile + vector * stride + first * Vectors + 8u * i, x + 8 * i);
  }
}

// Loads the first `Units` units of thread `index`, of the keys from `base` on.
template <ushort Units, ushort Keys, ushort Pairing>
inline void fetchUnits(
    thread CachePiece<8>* pieces, CacheVectors from, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end, uint index, uint threads) {
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    fetchUnit<Keys, Pairing>(pieces + n * vectorsOfUnit(Pairing), from, p, sequence, base, end, index + n * threads);
  }
}
// Stores them, and loads and stores the rest if there are few threads.
template <ushort Units, ushort Keys, ushort Pairing, typename T>
MNK_SHARED void storeUnits(
    threadgroup T* tile, uint stride, threadgroup float* scales, threadgroup const float* levels,
    thread const CachePiece<8>* pieces, CacheVectors from, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end, uint index, uint threads) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  const uint units = Keys / Vectors * (from.headDim / 8u);
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    if (index + n * threads < units) {
      storeUnit<Keys, Pairing>(tile, stride, scales, levels, pieces + n * Vectors, from, index + n * threads);
    }
  }
  for (uint unit = index + Units * threads; unit < units; unit += threads) {
    CachePiece<8> rest[Vectors];
    fetchUnit<Keys, Pairing>(rest, from, p, sequence, base, end, unit);
    storeUnit<Keys, Pairing>(tile, stride, scales, levels, rest, from, unit);
  }
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

// Sums the products that the simdgroups sharing these rows have stored, from `first` on. All of them sum in the same
// order and so get bit-identical scores.
template <ushort RowBlocks, ushort Blocks>
MNK_SHARED void sumParts(thread MatrixScores<RowBlocks, Blocks>& products, threadgroup const float2* first, uint lane) {
  MNK_UNROLL
  for (ushort i = 0; i < RowBlocks * Blocks; ++i) {
    float2 sum = first[i * 32u + lane];
    for (uint part = 1; part < flashSimdgroupsPerRow; ++part) {
      sum += first[(part * (RowBlocks * Blocks) + i) * 32u + lane];
    }
    products.of[i / Blocks][i % Blocks] = sum;
  }
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
inline void addValues(
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
