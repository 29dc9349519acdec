// Loads cached vectors as fragments of 8x8 matrices. A lane holds two neighboring elements of one row of a matrix. It
// loads exactly the elements that it holds: which elements form a matrix does not matter as long as both factors agree.
//   keys    matrix [key][dim]: a lane has a quarter of one vector, two elements of it in each matrix
//   values  matrix [dim][key]: a lane has an eighth of two vectors, one element of each in each matrix
#pragma once
#include "AttentionRows.h"
#include "CacheTile.h"

pipeline_constant(bool, flashHasRowMajorMatrices, kFlashDecodeHasRowMajorMatrices);
pipeline_constant(uint, flashTableBits, kFlashDecodeTableBits);

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
template <typename T>
inline vec<T, 2> maxOfColumns(vec<T, 2> x) {
  x = max(x, simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 4 : 2)));
  x = max(x, simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 8 : 4)));
  return max(x, simd_shuffle_xor(x, ushort(16)));
}
inline float2 sumOfColumns(float2 x) {
  x += simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 4 : 2));
  x += simd_shuffle_xor(x, ushort(flashHasRowMajorMatrices ? 8 : 4));
  return x + simd_shuffle_xor(x, ushort(16));
}

// The biased exponent of a number; 0 for infinity, NaN and numbers of 2^126 or more, whose unit would overflow.
inline uint finiteExponent(float x) {
  const uint exponent = (as_type<uint>(x) >> 23) & 255u;
  return exponent < 253u ? exponent : 0u;
}

template <typename T>
inline simdgroup_matrix<T, 8, 8> matrixOf(vec<T, 2> x) {
  simdgroup_matrix<T, 8, 8> matrix;
  matrix.thread_elements()[0] = x.x;
  matrix.thread_elements()[1] = x.y;
  return matrix;
}

// The key of a block of eight that a matrix row or column represents: even ones are keys 0 to 3, odd ones 4 to 7. The
// two keys of a lane's columns are then four apart, and each load of values covers four neighboring keys.
inline uint keyOfBlock(uint index) {
  return (index >> 1) | ((index & 1u) << 2);
}

// The index in the vector of element `e` of a lane's share, if `Parts` lanes share the vector. Dense vectors are
// interleaved in groups of eight elements, so that lanes load neighboring bytes; codes are contiguous.
template <ushort Dim, ushort Parts>
inline uint sharedElement(uint part, uint e) {
  return kvHasQuantizedKeys ? part * (Dim / Parts) + e : (e / 8u * Parts + part) * 8u + e % 8u;
}

// Eight neighboring elements of queries, as pairs of halves.
inline void setHalves(thread uint* into, uint4 words) {
  into[0] = words.x;
  into[1] = words.y;
  into[2] = words.z;
  into[3] = words.w;
}
inline void loadHalves(thread uint* into, device const uchar* queries, ulong index) {
  if (flashIsAligned) {
    setHalves(into, *reinterpret_cast<device const uint4*>(queries + 2u * index));
    return;
  }
  device const ushort* from = reinterpret_cast<device const ushort*>(queries) + index;
  MNK_UNROLL
  for (ushort i = 0; i < 4; ++i) {
    into[i] = uint(from[2 * i]) | uint(from[2 * i + 1]) << 16;
  }
}

template <ushort Dim, ushort Parts>
MNK_SHARED void loadShare(thread CachePiece<Dim / Parts>& piece, CacheVectors from, ulong row, uint part) {
  if (kvHasQuantizedKeys) {
    loadPiece(piece, from, row, part * (Dim / Parts));
    return;
  }
  device const uchar* at = from.vectors + row * from.bytes;
  MNK_UNROLL
  for (uint i = 0; i < Dim / Parts / 8; ++i) {
    loadWords(at + (i * Parts + part) * 16u, 16u, piece.words + 4u * i);
  }
}

// Levels are computed, two at a time, if the codebook follows a curve. Otherwise, they are looked up in a table.
inline bool computesLevels(uint bits) {
  return kvHasQuantizedKeys && kvIsTurbo && kTurboHasCurve(bits);
}
inline bool looksUpLevels(uint bits) {
  return kvHasQuantizedKeys && !computesLevels(bits);
}
inline bool hasTwoTables() {
  return looksUpLevels(kvKeyBits) && looksUpLevels(kvValueBits) && kvKeyBits != kvValueBits;
}

// The factor of computed levels. Matrices hold levels without it; it is applied to scores and to results.
inline float levelFactor(uint bits) {
  return computesLevels(bits) ? kTurboCurves[3u * (bits - 2u) + 2u] : 1.0f;
}

// The 16 bits of a plane that contain the field of element `e`.
inline ushort bitsAround(thread const uint* plane, uint e, uint width) {
  const uint word = plane[e * width / 32u];
  return ushort(e * width / 16u % 2u == 0u ? word : word >> 16);
}

// Computes the levels of element `i` of share `a` and element `j` of share `b`. Their codes, side by side, become bits
// of the mantissas of two halves. The lowest bit stays 0, so that subtracting the middle of the codes is exact.
template <ushort Elements>
inline half2 levelPair(thread const uint* a, uint i, thread const uint* b, uint j, uint bits) {
  uint halves = (25u - bits) * 0x04000400u;  // 2^(10 - bits), to which codes add multiples of 2^(1 - bits)
  uint shift = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMaxPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint from = i * width % 16u;
      const uint fromB = j * width % 16u;
      const uint fieldB = bitsAround(b, j, width);
      const ushort besideA = ushort(fromB >= from ? fieldB >> (fromB - from) : fieldB << (from - fromB));
      const uint both = as_type<uint>(ushort2(bitsAround(a, i, width), besideA));
      const uint to = shift + 1u;
      halves |= (from > to ? both >> (from - to) : both << (to - from)) & (((1u << width) - 1u) << to) * 0x00010001u;
      a += (Elements * width + 31u) / 32u;
      b += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  constant const float* curve = kTurboCurves + 3u * (bits - 2u);
  const float middle = float(1024u >> bits) + 1.0f - 1.0f / float(1u << bits);
  const half2 t = as_type<half2>(halves) - half2(half(middle));
  const half2 u = fma(t, t, half2(half(curve[0])));
  return fma(u, u, half2(half(curve[1]))) * t;
}

// Codebook tables of halves. With four bits, an entry decodes both codes of a byte; otherwise one code. Entries are
// replicated side by side to avoid bank conflicts, as often as memory allows and lanes can use.
inline uint tableEntryBits(uint bits) {  // log2 of the number of entries
  return bits == 4u ? 8u : bits;
}
inline uint tableCopyBits(uint bits) {  // log2 of the copies of a four-byte entry; two tables get half the memory each
  return min(flashTableBits - (hasTwoTables() ? 3u : 2u) - tableEntryBits(bits), 5u);
}

// The content of a table entry, or of the last one if there are not that many.
inline uint tableEntry(uint bits, uint entry) {
  const CodeBook book = codeBook(bits);
  const uint last = (1u << tableEntryBits(bits)) - 1u;
  const half x = half(codebookEntry(book, min(entry, last) & ((1u << bits) - 1u)));
  const half y = bits == 4u ? half(codebookEntry(book, min(entry, last) >> 4)) : x;
  return as_type<uint>(half2(x, y));
}

// Fills bytes [first, end) of a table; both are multiples of 512. `own` is the entry with the number of the thread: the
// caller loads it early, to hide the latency.
MNK_SHARED void fillTable(
    threadgroup half2* table, uint bits, uint own, uint first, uint end, uint threadIndex, uint threads) {
  const uint units = 1u << (tableCopyBits(bits) - 2u);  // of four copies, in an entry
  for (uint entry = threadIndex; entry < 1u << tableEntryBits(bits); entry += threads) {
    if (entry != threadIndex) {
      own = tableEntry(bits, entry);
    }
    threadgroup uint4* into = reinterpret_cast<threadgroup uint4*>(table) + entry * units;
    if (entry * units * 16u >= first && entry * units * 16u < end) {
      MNK_UNROLL
      for (uint i = 0; i < units; ++i) {
        into[(i + threadIndex) % units] = uint4(own);  // lanes start with different copies to avoid bank conflicts
      }
    }
  }
}

// The tables of a threadgroup: that of keys, if there are two, and the last one, of values or of both. Their entries
// are those with the number of the thread.
struct MatrixTables {
  uint bytes;  // of each
  uint lastBits;
  uint keyEntry;
  uint lastEntry;
};
inline MatrixTables matrixTables(uint threadIndex) {
  MatrixTables tables;
  tables.bytes = 1u << (hasTwoTables() ? flashTableBits - 1u : flashTableBits);
  tables.lastBits = looksUpLevels(kvValueBits) ? kvValueBits : kvKeyBits;
  tables.keyEntry = hasTwoTables() ? tableEntry(kvKeyBits, threadIndex) : 0u;
  tables.lastEntry = looksUpLevels(tables.lastBits) ? tableEntry(tables.lastBits, threadIndex) : 0u;
  return tables;
}

// Where a lane's copy of a table starts, in bytes.
inline uint copyOfLane(uint bits, uint lane) {
  return lane % (1u << tableCopyBits(bits)) * 4u;
}
// The table entry for the code, or pair of codes, that starts at bit `first` of a word. It takes one shift, one mask
// and one load.
inline half2 entryOf(threadgroup const half2* table, uint copy, uint bits, uint word, uint first) {
  const uint place = 2u + tableCopyBits(bits);  // bit position of the entry index in the byte address
  const uint moved = first >= place ? word >> (first - place) : word << (place - first);
  const uint offset = (moved & (((1u << tableEntryBits(bits)) - 1u) << place)) | copy;
  return *reinterpret_cast<threadgroup const half2*>(reinterpret_cast<threadgroup const uchar*>(table) + offset);
}
// The codebook entry of one code of a fragment.
template <ushort Elements>
inline half levelOfPiece(
    thread const CachePiece<Elements>& piece, uint e, uint bits, threadgroup const half2* table, uint copy) {
  if (planeWidth(bits, 0) == 8u) {
    return entryOf(table, copy, bits, piece.words[e / 4u], e % 4u * 8u).x;
  }
  return entryOf(table, copy, bits, codeOfPiece(piece, e, bits), 0).x;
}

inline half halfOfWord(uint word, uint index) {
  const half2 pair = as_type<half2>(word);
  return index == 0u ? pair.x : pair.y;
}
// Element `e` of two shares of dense vectors.
inline half2 elementOfBoth(thread const uint* a, thread const uint* b, uint e) {
  return half2(halfOfWord(a[e / 2u], e % 2u), halfOfWord(b[e / 2u], e % 2u));
}

// The two elements of a share of a key that form pair `i`. Those of computed levels are chosen so that few instructions
// bring their codes side by side.
template <ushort Elements>
inline uint2 elementsOfPair(uint i, uint bits) {
  if (!computesLevels(bits)) {
    return uint2(2u * i, 2u * i + 1u);
  }
  const uint first = bits == 8u ? i / 2u * 4u + i % 2u : i;
  return uint2(first, first + (bits == 8u ? 2u : Elements / 2u));
}
template <ushort Elements>
inline half2 keyPair(
    thread const CachePiece<Elements>& piece, uint i, uint bits, threadgroup const half2* table, uint copy) {
  if (!kvHasQuantizedKeys) {
    return as_type<half2>(piece.words[i]);
  }
  const uint2 pair = elementsOfPair<Elements>(i, bits);
  if (computesLevels(bits)) {
    return levelPair<Elements>(piece.words, pair.x, piece.words, pair.y, bits);
  }
  if (bits == 4u) {
    return entryOf(table, copy, bits, piece.words[i / 4u], i % 4u * 8u);
  }
  return half2(levelOfPiece(piece, pair.x, bits, table, copy), levelOfPiece(piece, pair.y, bits, table, copy));
}

// Element i of the shares of two values.
template <ushort Elements>
inline half2 valuePair(
    thread const CachePiece<Elements>& a, thread const CachePiece<Elements>& b, uint i, uint bits,
    threadgroup const half2* table, uint copy) {
  if (!kvHasQuantizedKeys) {
    return elementOfBoth(a.words, b.words, i);
  }
  if (computesLevels(bits)) {
    return levelPair<Elements>(a.words, i, b.words, i, bits);
  }
  if (bits == 4u) {
    // Codes of both values side by side, those of four elements at once.
    const uint x = a.words[i / 8u];
    const uint y = b.words[i / 8u];
    const uint both =
        i % 2u == 0u ? (x & 0x0f0f0f0fu) | ((y << 4) & 0xf0f0f0f0u) : ((x >> 4) & 0x0f0f0f0fu) | (y & 0xf0f0f0f0u);
    return entryOf(table, copy, bits, both, i % 8u / 2u * 8u);
  }
  return half2(levelOfPiece(a, i, bits, table, copy), levelOfPiece(b, i, bits, table, copy));
}
