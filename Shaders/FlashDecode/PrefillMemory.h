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

inline void storeEight(threadgroup half* into, thread const half* x) {
  *reinterpret_cast<threadgroup uint4*>(into) = uint4(
      as_type<uint>(half2(x[0], x[1])), as_type<uint>(half2(x[2], x[3])), as_type<uint>(half2(x[4], x[5])),
      as_type<uint>(half2(x[6], x[7])));
}
inline void storeEight(threadgroup float* into, thread const float* x) {
  reinterpret_cast<threadgroup float4*>(into)[0] = float4(x[0], x[1], x[2], x[3]);
  reinterpret_cast<threadgroup float4*>(into)[1] = float4(x[4], x[5], x[6], x[7]);
}

// Keys or values of a tile as threads load them: in units of eight elements of a vector, or of both vectors of a pair,
// from unit `index` on. A thread keeps up to `Units` units of the next tile, in an array of their own: in this struct,
// it would keep all of it out of registers.
template <ushort Units, ushort Keys, ushort Pairing>
struct PrefillUnits {
  CacheVectors from;
  uint stride;  // elements of the tile from a vector or pair to the next
  uint index;
  uint threads;
};

// The key of a vector, or of one side of a pair, relative to the tile's first.
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
// Stores a unit in a tile, and the scales of codes, `Keys` for each block of kScaledElements.
template <ushort Units, ushort Keys, ushort Pairing, typename T>
inline void storeUnit(
    thread const PrefillUnits<Units, Keys, Pairing>& units, thread const CachePiece<8>* pieces, uint unit,
    threadgroup T* tile, threadgroup float* scales, threadgroup const float* codebook) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  constexpr ushort Together = Pairing == kSingleVectors ? 8 : Pairing;  // elements of a vector that lie side by side
  const CacheVectors from = units.from;
  const uint vector = unit / (from.headDim / 8u);
  const uint first = unit % (from.headDim / 8u) * 8u;
  T x[8 * Vectors];
  MNK_UNROLL
  for (ushort side = 0; side < Vectors; ++side) {
    MNK_UNROLL
    for (ushort chunk = 0; chunk < 2; ++chunk) {
      const floats<4> four = floatsOfPiece<4>(pieces[side], chunk, from.bits, codebook);
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
    storeEight(tile + vector * units.stride + first * Vectors + 8u * i, x + 8 * i);
  }
}

// Loads a thread's units of the keys from `base` on.
template <ushort Units, ushort Keys, ushort Pairing>
inline void fetchUnits(
    thread const PrefillUnits<Units, Keys, Pairing>& units, thread CachePiece<8>* next, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end) {
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    const uint unit = units.index + n * units.threads;
    fetchUnit<Keys, Pairing>(next + n * vectorsOfUnit(Pairing), units.from, p, sequence, base, end, unit);
  }
}
// Stores them, and loads and stores the rest if there are few threads.
template <ushort Units, ushort Keys, ushort Pairing, typename T>
MNK_SHARED void storeUnits(
    thread const PrefillUnits<Units, Keys, Pairing>& units, thread const CachePiece<8>* next, threadgroup T* tile,
    threadgroup float* scales, threadgroup const float* codebook, constant FlashDecodeParams& p,
    constant FlashDecodeSequence& sequence, uint base, uint end) {
  constexpr ushort Vectors = vectorsOfUnit(Pairing);
  const uint count = Keys / Vectors * (units.from.headDim / 8u);
  MNK_UNROLL
  for (ushort n = 0; n < Units; ++n) {
    if (units.index + n * units.threads < count) {
      storeUnit(units, next + n * Vectors, units.index + n * units.threads, tile, scales, codebook);
    }
  }
  for (uint unit = units.index + Units * units.threads; unit < count; unit += units.threads) {
    CachePiece<8> rest[Vectors];
    fetchUnit<Keys, Pairing>(rest, units.from, p, sequence, base, end, unit);
    storeUnit(units, rest, unit, tile, scales, codebook);
  }
}
