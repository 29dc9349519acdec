// Vectors of a cache as 8x8 matrices. A lane holds two neighboring elements of one row of a matrix; what it loads of a
// vector are just the elements that it holds, because which of them form a matrix together is free as long as both
// factors agree.
//   keys    matrix [key][dim]: a lane has a quarter of one vector, two elements of it in each matrix
//   values  matrix [dim][key]: a lane has an eighth of two vectors, one element of each in each matrix
#pragma once
#include "CachePieces.h"

pipeline_constant(bool, flashHasRowMajorMatrices, kFlashDecodeHasRowMajorMatrices);

// The row and the first of the two columns that a lane holds.
struct MatrixLane {
  uint row;
  uint column;
};
inline MatrixLane matrixLane(uint lane) {
  if (flashHasRowMajorMatrices) {
    return MatrixLane{lane >> 2, (lane & 3u) * 2u};
  }
  return MatrixLane{((lane >> 1) & 3u) | ((lane >> 2) & 4u), (lane & 1u) * 2u + ((lane >> 1) & 4u)};
}

// Over the lanes that hold the same columns.
inline float2 largestOfColumns(float2 x) {
  x = max(x, simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 4 : 2)));
  x = max(x, simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 8 : 4)));
  return max(x, simd_shuffle_xor(x, ushort(16)));
}
inline float2 sumOfColumns(float2 x) {
  x += simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 4 : 2));
  x += simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 8 : 4));
  return x + simd_shuffle_xor(x, ushort(16));
}

inline simdgroup_half8x8 matrixOf(half2 x) {
  simdgroup_half8x8 matrix;
  matrix.thread_elements()[0] = x.x;
  matrix.thread_elements()[1] = x.y;
  return matrix;
}

// Which of a block's eight keys a matrix's row or column stands for: even ones are keys 0 to 3, odd ones 4 to 7, so
// that the two keys of a lane's columns are four apart and each load of values covers four neighboring keys.
inline uint keyOfBlock(uint index) {
  return (index >> 1) | ((index & 1u) << 2);
}

// The element of the vector that is element `e` of a lane's share, where `Parts` lanes share the vector. Dense vectors
// are dealt out by eights, so that lanes load neighboring bytes; codes in one piece.
template <ushort Dim, ushort Parts>
inline uint sharedElement(uint part, uint e) {
  return flashIsCoded ? part * (Dim / Parts) + e : (e / 8u * Parts + part) * 8u + e % 8u;
}

template <ushort Dim, ushort Parts>
inline void loadShare(thread CachePiece<Dim / Parts>& piece, CacheVectors from, ulong row, uint part) {
  if (flashIsCoded) {
    loadPiece(piece, from, row, part * (Dim / Parts));
    return;
  }
  device const uchar* at = from.vectors + row * from.bytes;
  MNK_UNROLL
  for (uint i = 0; i < Dim / Parts / 8; ++i) {
    loadWords(at + (i * Parts + part) * 16u, 16u, piece.words + 4u * i);
  }
}

// Tables of levels as halves. Of four bits: both codes of a byte at once; else one code at a time. An entry has copies
// side by side against conflicts of banks, as many as there is memory for and lanes to use them.
inline uint tableEntryBits(uint bits) {  // of an entry's number
  return bits == 4u ? 8u : bits;
}
inline uint tableCopyBits(uint bits) {  // of a copy's; one table has kFlashDecodeMatrixTableBytes, two have half each
  return min((kvKeyBits == kvValueBits ? 12u : 11u) - tableEntryBits(bits), 5u);
}

inline half levelAsHalf(uint bits, uint code) {
  return half(levelOf(codeBook(bits), code));
}
inline void fillTable(threadgroup half2* table, uint bits, uint index, uint threads) {
  for (uint i = index; i < 1u << (tableEntryBits(bits) + tableCopyBits(bits)); i += threads) {
    const uint entry = i >> tableCopyBits(bits);
    const half low = levelAsHalf(bits, bits == 4u ? entry & 15u : entry);
    table[i] = half2(low, bits == 4u ? levelAsHalf(4, entry >> 4) : low);
  }
}

// The copy of a table that a lane reads, and an entry of it: `own` is the lane's copy of the first.
inline uint copyOfLane(uint bits, uint lane) {
  return lane % (1u << tableCopyBits(bits));
}
inline half2 entryOf(threadgroup const half2* own, uint bits, uint entry) {
  return own[entry << tableCopyBits(bits)];
}

inline half halfOfWord(uint word, uint index) {
  const half2 pair = as_type<half2>(word);
  return index == 0u ? pair.x : pair.y;
}

// Elements 2 * i and 2 * i + 1 of a share of a key.
template <ushort Elements>
inline half2 keyPair(thread const CachePiece<Elements>& piece, uint i, uint bits, threadgroup const half2* own) {
  if (!flashIsCoded) {
    return as_type<half2>(piece.words[i]);
  }
  if (bits == 4u) {
    return entryOf(own, bits, (piece.words[i / 4u] >> (8u * (i % 4u))) & 255u);
  }
  return half2(
      entryOf(own, bits, codeOfPiece(piece, 2u * i, bits)).x,
      entryOf(own, bits, codeOfPiece(piece, 2u * i + 1u, bits)).x);
}

// Element i of the shares of two values.
template <ushort Elements>
inline half2 valuePair(
    thread const CachePiece<Elements>& a, thread const CachePiece<Elements>& b, uint i, uint bits,
    threadgroup const half2* own) {
  if (!flashIsCoded) {
    return half2(halfOfWord(a.words[i / 2u], i % 2u), halfOfWord(b.words[i / 2u], i % 2u));
  }
  if (bits == 4u) {
    // Codes of both values side by side, those of four elements at once.
    const uint x = a.words[i / 8u];
    const uint y = b.words[i / 8u];
    const uint both =
        i % 2u == 0u ? (x & 0x0f0f0f0fu) | ((y << 4) & 0xf0f0f0f0u) : ((x >> 4) & 0x0f0f0f0fu) | (y & 0xf0f0f0f0u);
    return entryOf(own, bits, (both >> (i % 8u / 2u * 8u)) & 255u);
  }
  return half2(entryOf(own, bits, codeOfPiece(a, i, bits)).x, entryOf(own, bits, codeOfPiece(b, i, bits)).x);
}
