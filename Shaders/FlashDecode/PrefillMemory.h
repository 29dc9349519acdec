// The threadgroup memory of the prefill kernel: a tile of keys and a tile of values, as elements of type T (f16 or
// f32), which all simdgroups load together.
//   keys    [pair][dim / 2][2][2]: pairs of elements of the keys that are in the same row of two matrices alternate
//   values  [pair][dim][2]: elements of the values in the two columns that a lane has of a matrix alternate
// `flashSimdgroupsPerRow` simdgroups share a row of more than 128 elements: each has a part of its query and of its
// result. In a latent cache, a key is the value followed by `Extra` elements per simdgroup. Its values serve as keys
// too, so neither are in pairs; nor are the keys of a tile that has only one block of eight.
#pragma once
#include "AttentionRows.h"
#include "CacheTile.h"

pipeline_constant(uint, flashSimdgroupsPerRow, kFlashDecodeSimdgroupsPerRow);

// Elements of a vector that share a scale.
constant constexpr uint kScaledElements = 256;

// The key of a block of eight that a matrix row or column represents. In this order, the keys of neighboring rows and
// those of every other column lie in different banks.
inline uint keyOfRow(uint index) {
  return index ^ (index >> 2);
}

// Vectors of a tile are single, or in pairs: the elements of both alternate, or two elements of each.
constant constexpr ushort kSingleVectors = 0;
constant constexpr ushort kValuePairs = 1;
constant constexpr ushort kKeyPairs = 2;
constexpr ushort vectorsOfUnit(ushort pairing) {
  return pairing == kSingleVectors ? 1 : 2;
}

// The constants of a kernel instance. A simdgroup computes `Dim` elements of `OwnRows` rows.
template <typename T, ushort Elements, ushort ExtraElements, ushort BlocksOfRows, ushort TileKeys>
struct PrefillShape {
  typedef T Element;
  static constexpr constant bool IsLatent = ExtraElements != 0;
  static constexpr constant ushort Dim = Elements;
  static constexpr constant ushort Extra = ExtraElements;
  static constexpr constant ushort KeyDim = IsLatent ? Extra : Dim;  // of keys that are not values
  static constexpr constant ushort RowBlocks = BlocksOfRows;
  static constexpr constant ushort OwnRows = 8 * RowBlocks;
  static constexpr constant ushort Keys = TileKeys;
  static constexpr constant ushort Blocks = Keys / 8;
  static constexpr constant ushort ValuePairing = IsLatent ? kSingleVectors : kValuePairs;
  static constexpr constant ushort KeyPairing = IsLatent || Blocks % 2 != 0 ? kSingleVectors : kKeyPairs;
  static constexpr constant ushort ValueVectors = vectorsOfUnit(ValuePairing);
  static constexpr constant ushort KeyVectors = vectorsOfUnit(KeyPairing);
  // What threads keep of the next tile, so that its loads overlap with the arithmetic of this one: all of it if there
  // are at least eight simdgroups.
  static constexpr constant uint Parts = IsLatent                             ? 4
                                         : Dim > 64 && Keys * sizeof(T) <= 32 ? 2
                                                                              : 1;  // as planned, at most
  static constexpr constant ushort ValueUnits = (Keys * Dim * Parts / (8 * ValueVectors) + 255) / 256;
  static constexpr constant ushort KeyUnits = (Keys * KeyDim * Parts / (8 * KeyVectors) + 255) / 256;
};

// The keys or the values of a tile, and where they come from.
template <typename T>
struct PrefillVectors {
  threadgroup T* elements;
  uint stride;                // elements from a vector or pair to the next
  threadgroup float* scales;  // of codes, `Keys` for each block of kScaledElements
  threadgroup const float* codebook;
  CacheVectors from;
};
template <typename T>
struct PrefillMemory {
  PrefillVectors<T> keys;
  PrefillVectors<T> values;
  Codebooks codebooks;
  threadgroup float2* rowStats;  // of queries and results, in place of scales
  threadgroup float2* parts;     // products of simdgroups that share rows
};
template <typename Shape>
inline PrefillMemory<typename Shape::Element> memoryIn(threadgroup float* pool, CacheHead head) {
  typedef typename Shape::Element T;
  const uint headDim = Shape::Dim * flashSimdgroupsPerRow;
  PrefillMemory<T> memory;
  memory.keys.from = head.keys;
  memory.keys.elements = reinterpret_cast<threadgroup T*>(pool);
  memory.keys.stride = Shape::KeyVectors * kFlashPrefillKeyStride(Shape::KeyDim * flashSimdgroupsPerRow);
  memory.values.from = head.values;
  memory.values.elements = memory.keys.elements + Shape::Keys / Shape::KeyVectors * memory.keys.stride;
  memory.values.stride = Shape::IsLatent ? kFlashPrefillKeyStride(headDim) : kFlashPrefillPairStride(headDim);
  memory.rowStats = reinterpret_cast<threadgroup float2*>(
      memory.values.elements + Shape::Keys / Shape::ValueVectors * memory.values.stride);
  memory.keys.scales = reinterpret_cast<threadgroup float*>(memory.rowStats);
  memory.values.scales = memory.keys.scales + Shape::Keys;
  memory.codebooks = codebooksIn(reinterpret_cast<threadgroup float*>(memory.rowStats + 2 * Shape::Keys));
  memory.keys.codebook = memory.codebooks.keys;
  memory.values.codebook = memory.codebooks.values;
  memory.parts =
      reinterpret_cast<threadgroup float2*>(memory.codebooks.values + (kvHasQuantizedValues ? 1u << kvValueBits : 0u));
  return memory;
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
// Stores a unit in a tile.
template <ushort Keys, ushort Pairing, typename T>
inline void storeUnit(thread const PrefillVectors<T>& vectors, thread const CachePiece<8>* pieces, uint unit) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  constexpr ushort Together = Pairing == kSingleVectors ? 8 : Pairing;  // elements of a vector that lie side by side
  const CacheVectors from = vectors.from;
  const uint vector = unit / (from.headDim / 8u);
  const uint first = unit % (from.headDim / 8u) * 8u;
  T x[8 * Vectors];
  MNK_UNROLL
  for (ushort side = 0; side < Vectors; ++side) {
    MNK_UNROLL
    for (ushort chunk = 0; chunk < 2; ++chunk) {
      const floats<4> four = floatsOfPiece<4>(pieces[side], chunk, from.bits, vectors.codebook);
      MNK_UNROLL
      for (ushort i = 0; i < 4; ++i) {
        const ushort element = 4 * chunk + i;
        x[element / Together * (Vectors * Together) + side * Together + element % Together] = T(four[i]);
      }
    }
    if (from.bits != 0u && first % kScaledElements == 0u) {
      vectors.scales[first / kScaledElements * Keys + keyOfVector<Pairing>(vector, side)] =
          codebookScale(pieces[side].scale, from);
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < Vectors; ++i) {
    storeEight(vectors.elements + vector * vectors.stride + first * Vectors + 8u * i, x + 8 * i);
  }
}

// Loads the first `Units` units of thread `index`, of the keys from `base` on.
template <ushort Units, ushort Keys, ushort Pairing, typename T>
inline void fetchUnits(
    thread CachePiece<8>* pieces, thread const PrefillVectors<T>& vectors, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end, uint index, uint threads) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    fetchUnit<Keys, Pairing>(pieces + n * Vectors, vectors.from, p, sequence, base, end, index + n * threads);
  }
}
// Stores them, and loads and stores the rest if there are few threads.
template <ushort Units, ushort Keys, ushort Pairing, typename T>
MNK_SHARED void storeUnits(
    thread const PrefillVectors<T>& vectors, thread const CachePiece<8>* pieces, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end, uint index, uint threads) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  const uint units = Keys / Vectors * (vectors.from.headDim / 8u);
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    if (index + n * threads < units) {
      storeUnit<Keys, Pairing>(vectors, pieces + n * Vectors, index + n * threads);
    }
  }
  for (uint unit = index + Units * threads; unit < units; unit += threads) {
    CachePiece<8> rest[Vectors];
    fetchUnit<Keys, Pairing>(rest, vectors.from, p, sequence, base, end, unit);
    storeUnit<Keys, Pairing>(vectors, rest, unit);
  }
}
