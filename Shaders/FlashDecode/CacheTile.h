// A lane's fragment of a cached vector: consecutive elements of a dense vector, or codes and their scale. It stays in
// the form in which it was loaded, because converting it right away would stall on the load.
#pragma once
#include "../Common/CodePlanes.h"
#include "../Common/Elements.h"
#include "../Common/Lanes.h"
#include "FlashDecodeTypes.h"

pipeline_constant(uint, flashCacheType, kFlashDecodeCacheType);
pipeline_constant(bool, flashIsAligned, kFlashDecodeIsAligned);
pipeline_constant(bool, flashIsPadded, kFlashDecodeIsPadded);
pipeline_constant(bool, flashIsOneTensor, kFlashDecodeIsOneTensor);

// Bits of a code, or 0 for dense vectors. They fold to constants in every kernel.
inline uint keyCodeBits() {
  return kvHasQuantizedKeys ? kvKeyBits : 0u;
}
inline uint valueCodeBits() {
  return kvHasQuantizedValues ? kvValueBits : 0u;
}

template <ushort Elements>
struct CachePiece {
  uint words[Elements];
  uint scale;
};

inline void loadWords(device const uchar* from, uint bytes, thread uint* words) {
  loadBytes(from, bytes, flashIsAligned, words);
}

// How vectors of keys or of values of one head are found and read.
struct CacheVectors {
  device const uchar* vectors;  // elements or codes, from slot 0 on
  device const uchar* scales;   // of codes, from slot 0 on
  uint bytes;                   // of a vector
  uint bits;                    // of a code, or 0
  uint headDim;
  float inverseRoot;  // this and the next: of mlx1 only
  float scaleFactor;
};

// The length of cached keys and values in a kernel instance for `dim` elements. That of codes is known at compile time
// even if they are padded.
inline uint keyLength(uint dim) {
  return kvHasQuantizedKeys ? kvKeyDim : dim;
}
inline uint valueLength(uint dim) {
  return kvHasQuantizedValues ? kvValueDim : dim;
}

// The vectors of one head; `first` is the index of its first vector. `codeBytes` is used only for mlx1 and for padded
// dense vectors; the size of all others is known at compile time. Dense vectors have no scales.
inline CacheVectors vectorsFrom(
    device const uchar* vectors, device const uchar* scales, ulong first, uint bits, uint headDim, uint codeBytes,
    float inverseRoot, float scaleFactor) {
  const uint size = flashCacheType == uint(kFloat32) ? 4u : 2u;
  uint bytes = headDim * size;
  if (flashIsPadded && bits == 0u) {
    bytes = codeBytes;
    headDim = codeBytes / size;
  }
  if (bits != 0u) {
    bytes = kvIsTurbo ? headDim * bits / 8u : codeBytes;
    scales += first * scaleBytes(headDim);
  }
  return CacheVectors{vectors + first * bytes, scales, bytes, bits, headDim, inverseRoot, scaleFactor};
}

// Adjusts keys and values that are interleaved in one tensor, each value followed by the rest of its key. Both were set
// up as if each had the tensor to itself.
inline void joinVectors(thread CacheVectors& keys, thread CacheVectors& values, ulong first) {
  const uint bytes = keys.bytes + values.bytes;
  keys.vectors += first * values.bytes + values.bytes;
  values.vectors += first * keys.bytes;
  keys.bytes = bytes;
  values.bytes = bytes;
}

// The stored scale of the codes from element `first` on of vector `row`, and the factor for codebook entries that it
// encodes.
inline uint storedScale(CacheVectors from, ulong row, uint first) {
  return storedScale(from.scales, row, from.headDim, first);
}
inline float codebookScale(uint stored, CacheVectors from) {
  return codebookScale(stored, from.headDim, from.inverseRoot, from.scaleFactor);
}

// Loads `Words` words, or clears them past the end of a padded vector. A padded vector is a multiple of eight elements,
// so no load crosses its end.
template <ushort Words>
inline void loadOrClear(device const uchar* from, bool isThere, thread uint* words) {
  if (isThere) {
    loadWords(from, 4u * Words, words);
  } else {
    MNK_UNROLL
    for (ushort i = 0; i < Words; ++i) {
      words[i] = 0;
    }
  }
}
// Loads the elements from `first` on, a multiple of `Elements`, of vector `row`. Dense elements past the end are 0.
template <ushort Elements>
MNK_SHARED void loadPiece(thread CachePiece<Elements>& piece, CacheVectors from, ulong row, uint first) {
  static_assert(Elements % 4 == 0, "a load has four elements or more");
  device const uchar* at = from.vectors + row * from.bytes;
  if (from.bits == 0u) {
    const uint size = flashCacheType == uint(kFloat32) ? 4u : 2u;
    at += first * size;
    // Loads four elements, or eight 16-bit ones if `Elements` is a multiple of eight.
    MNK_UNROLL
    for (ushort i = 0; i < Elements / 4; ++i) {
      if (Elements % 8 != 0 && size == 2u) {
        loadOrClear<2>(at + 8u * i, !flashIsPadded || first + 4u * i < from.headDim, piece.words + 2u * i);
      } else if (16u * i < Elements * size) {
        loadOrClear<4>(at + 16u * i, !flashIsPadded || first + 16u * i / size < from.headDim, piece.words + 4u * i);
      }
    }
    return;
  }
  if (flashIsPadded) {
    loadCodes<Elements, true>(at, from.bits, from.headDim, first, flashIsAligned, piece.words);
  } else {
    loadCodes<Elements, false>(at, from.bits, from.headDim, first, flashIsAligned, piece.words);
  }
  piece.scale = storedScale(from, row, first);
}

// The codebooks of keys and values in threadgroup memory, which all threads fill together.
inline uint codebookFloats(uint bits) {
  return bits == 0u ? 0u : 1u << bits;
}
inline void fillCodebooks(threadgroup float* keys, threadgroup float* values, uint index, uint threads) {
  if (kvHasQuantizedKeys) {
    fillCodebook(keys, kvKeyBits, index, threads);
  }
  if (kvHasQuantizedValues) {
    fillCodebook(values, kvValueBits, index, threads);
  }
}

// Adds N codes of a fragment to `codes`, which must be 0.
template <ushort N, ushort Elements>
inline void codesOfPiece(thread uint* codes, thread const CachePiece<Elements>& piece, uint first, uint bits) {
  uint shift = 0;
  uint word = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMaxPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      addFields<N>(codes, piece.words + word, first, width, shift);
      word += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < N; ++i) {
    // Mlx1 stores a code in a whole byte, whose unused bits may be set in uninitialized memory.
    codes[i] &= (1u << bits) - 1u;
  }
}
template <ushort Elements>
inline uint codeOfPiece(thread const CachePiece<Elements>& piece, uint e, uint bits) {
  return codeAt<Elements>(piece.words, e, bits);
}

// `Width` dense elements, or codebook entries from the table `levels`.
template <ushort Width, ushort Elements>
inline floats<Width> floatsOfPiece(
    thread const CachePiece<Elements>& piece, ushort chunk, uint bits, threadgroup const float* levels) {
  floats<Width> x;
  const uint first = chunk * Width;
  if (bits == 0u && flashCacheType == uint(kFloat16)) {
    setHalves(x, piece.words + first / 2u);
    return x;
  }
  if (bits != 0u) {
    uint codes[Width] = {};
    codesOfPiece<Width>(codes, piece, first, bits);
    MNK_UNROLL
    for (ushort i = 0; i < Width; ++i) {
      x[i] = levels[codes[i]];
    }
    return x;
  }
  MNK_UNROLL
  for (ushort i = 0; i < Width; ++i) {
    const bool isWhole = flashCacheType == uint(kFloat32);
    const uint word = piece.words[isWhole ? first + i : (first + i) / 2u];
    x[i] = as_type<float>(isWhole ? word : i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  }
  return x;
}
