// What a lane holds of a vector of a cache: neighboring elements of a dense one, or codes and their scale. It is kept
// as it was loaded, because a conversion would wait for the load.
#pragma once
#include "../Types/FlashDecodeTypes.h"
#include "CodePlanes.h"
#include "Elements.h"

pipeline_constant(uint, flashCacheType, kFlashDecodeCacheType);
pipeline_constant(bool, flashIsCoded, kFlashDecodeIsCoded);
pipeline_constant(bool, flashIsAligned, kFlashDecodeIsAligned);
pipeline_constant(bool, flashIsPadded, kFlashDecodeIsPadded);

// Planes of codes that a vector has at most: of 7 bits. A fixed number, so that loops over them unroll.
constant constexpr ushort kMostPlanes = 3;

template <ushort Elements>
struct CachePiece {
  uint words[Elements];
  uint scale;
};

// Bytes that a processor loads at once: 1, 2, 4, 8 or 16 of them, to as many words as they fill.
inline void loadWords(device const uchar* from, uint bytes, thread uint* words) {
  if (!flashIsAligned) {
    for (uint i = 0; i < bytes; i += 4u) {
      uint word = 0;
      for (uint j = i; j < min(i + 4u, bytes); ++j) {
        word |= uint(from[j]) << (8u * (j - i));
      }
      words[i / 4u] = word;
    }
  } else if (bytes == 16u) {
    const uint4 x = *reinterpret_cast<device const uint4*>(from);
    words[0] = x.x;
    words[1] = x.y;
    words[2] = x.z;
    words[3] = x.w;
  } else if (bytes == 8u) {
    const uint2 x = *reinterpret_cast<device const uint2*>(from);
    words[0] = x.x;
    words[1] = x.y;
  } else if (bytes == 4u) {
    words[0] = *reinterpret_cast<device const uint*>(from);
  } else if (bytes == 2u) {
    words[0] = *reinterpret_cast<device const ushort*>(from);
  } else {
    words[0] = *from;
  }
}

// How vectors of keys or of values of one head are found and read.
struct CacheVectors {
  device const uchar* vectors;  // elements or codes, from slot 0 on
  device const uchar* scales;   // of codes, likewise
  uint bytes;                   // of a vector
  uint bits;                    // of a code
  uint headDim;
  float inverseRoot;  // of mlx1, with the next
  float scaleFactor;
};

// The vectors from `first` on, a head's first one. `codeBytes` of a vector counts for mlx1 and for vectors that are
// shorter than the kernel's: all others have a size that is known when the kernel is compiled. Elements have no scales.
inline CacheVectors vectorsFrom(
    device const uchar* vectors, device const uchar* scales, ulong first, uint bits, uint headDim, uint codeBytes,
    float inverseRoot, float scaleFactor) {
  const uint size = flashCacheType == uint(kFloat32) ? 4u : 2u;
  uint bytes = headDim * size;
  if (flashIsPadded) {
    bytes = codeBytes;
    headDim = codeBytes / size;
  }
  if (flashIsCoded) {
    bytes = kvIsTurbo ? headDim * bits / 8u : codeBytes;
    scales += first * scaleBytes(headDim);
  }
  return CacheVectors{vectors + first * bytes, scales, bytes, bits, headDim, inverseRoot, scaleFactor};
}

// The scale of the codes of vector `row` of the head from `first` on, as it is stored, and what multiplies levels.
inline uint storedScale(CacheVectors from, ulong row, uint first) {
  return storedScale(from.scales, row, from.headDim, first);
}
inline float scaleOfLevels(uint stored, CacheVectors from) {
  return scaleOfLevels(stored, from.headDim, from.inverseRoot, from.scaleFactor);
}

// The elements of vector `row` of the head from `first` on, which is a multiple of `Elements`. Those beyond a vector
// that is shorter than the kernel's are 0 and not loaded: it is a multiple of eight elements, and so ends between
// loads.
template <ushort Elements>
inline void loadPiece(thread CachePiece<Elements>& piece, CacheVectors from, ulong row, uint first) {
  device const uchar* at = from.vectors + row * from.bytes;
  if (!flashIsCoded) {
    const uint size = flashCacheType == uint(kFloat32) ? 4u : 2u;
    const uint bytes = Elements * size % 16u == 0u ? 16u : 8u;
    at += first * size;
    MNK_UNROLL
    for (uint i = 0; i < Elements * size / 4u; i += bytes / 4u) {
      if (!flashIsPadded || first + 4u * i / size < from.headDim) {
        loadWords(at + 4u * i, bytes, piece.words + i);
      } else {
        for (uint j = 0; j < bytes / 4u; ++j) {
          piece.words[i + j] = 0;
        }
      }
    }
    return;
  }
  uint shift = 0;
  uint word = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMostPlanes; ++plane) {
    if (shift < from.bits) {
      const uint width = planeWidth(from.bits, shift);
      const uint bytes = Elements * width / 8u;
      MNK_UNROLL
      for (uint i = 0; i < bytes; i += 16u) {
        loadWords(at + first * width / 8u + i, min(bytes, 16u), piece.words + word + i / 4u);
      }
      at += from.headDim * width / 8u;
      word += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  piece.scale = storedScale(from, row, first);
}

// A code of a piece.
template <ushort Elements>
inline uint codeOfPiece(thread const CachePiece<Elements>& piece, uint e, uint bits) {
  uint code = 0;
  uint shift = 0;
  uint word = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMostPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint bit = e * width;
      code |= ((piece.words[word + bit / 32u] >> (bit % 32u)) & ((1u << width) - 1u)) << shift;
      word += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  return code & ((1u << bits) - 1u);  // a byte of mlx1 has more bits than its code, and memory may hold anything
}

// Four elements, or levels from a table of them.
template <ushort Elements>
inline float4 fourOfPiece(
    thread const CachePiece<Elements>& piece, ushort chunk, uint bits, threadgroup const float* levels) {
  if (!flashIsCoded) {
    if (flashCacheType == uint(kFloat32)) {
      return as_type<float4>(uint4(
          piece.words[4 * chunk], piece.words[4 * chunk + 1], piece.words[4 * chunk + 2], piece.words[4 * chunk + 3]));
    }
    const uint a = piece.words[2 * chunk];
    const uint b = piece.words[2 * chunk + 1];
    if (flashCacheType == uint(kFloat16)) {
      return float4(as_type<half4>(uint2(a, b)));
    }
    return as_type<float4>(uint4(a << 16, a & 0xffff0000u, b << 16, b & 0xffff0000u));
  }
  const uint first = 4u * chunk;
  return float4(
      levels[codeOfPiece(piece, first, bits)], levels[codeOfPiece(piece, first + 1u, bits)],
      levels[codeOfPiece(piece, first + 2u, bits)], levels[codeOfPiece(piece, first + 3u, bits)]);
}

// Writes the levels of all codes of so many bits, shared among the threads.
inline void fillLevels(threadgroup float* levels, uint bits, uint index, uint threads) {
  const CodeBook book = codeBook(bits);
  for (uint code = index; code < (1u << bits); code += threads) {
    levels[code] = levelOf(book, code);
  }
}
