// Rows of codes in memory. mlx1 with 5, 6 and 8 bits has a byte for each code; otherwise codes lie in planes by the
// binary digits of their bits, the widest first: see KVCodec.hpp. Rows are written in words of 32 bits where they are
// aligned.
#pragma once
#include "KVCodec.h"

pipeline_constant(bool, kvStoresWords, kKVCacheQuantizeStoresWords);

// The width of the plane that holds the low bits of codes from `shift` on: the highest power of two in what is left.
inline uint planeWidth(uint bits, uint shift) {
  if (!kvIsTurbo) {
    return bits == 4u ? 4u : 8u;
  }
  const uint left = bits - shift;
  return left >= 8u ? 8u : left >= 4u ? 4u : left >= 2u ? 2u : 1u;
}

inline uint packedFour(uint4 codes, uint width) {
  const uint4 low = codes & ((1u << width) - 1u);
  return low.x | (low.y << width) | (low.z << (2u * width)) | (low.w << (3u * width));
}

inline void storeWord(device uchar* row, uint index, uint word, uint bytes) {
  if (kvStoresWords) {
    reinterpret_cast<device uint*>(row)[index] = word;
  } else {
    for (uint i = 0; i < bytes; ++i) {
      row[4u * index + i] = uchar((word >> (8u * i)) & 0xffu);
    }
  }
}

// One plane of a vector's codes. `at` counts the lanes of the vector.
template <ushort Chunks>
inline void storePlane(
    thread const uint4* codes, uint shift, uint width, device uchar* plane, uint planeBytes, uint lanes, uint at,
    bool isStored) {
  const uint laneBits = 4u * Chunks * width;
  if (laneBits < 32u) {
    // Lanes put their bits together, and the first of them stores the word.
    const uint lanesOfWord = min(32u / laneBits, lanes);
    uint own = 0;
    for (ushort i = 0; i < Chunks; ++i) {
      own |= packedFour(codes[i] >> shift, width) << (4u * i * width);
    }
    const uint word = unionOverLanes(own << ((at % lanesOfWord) * laneBits), lanesOfWord);
    if (isStored && at % lanesOfWord == 0u) {
      storeWord(plane, at / lanesOfWord, word, min(4u, planeBytes));
    }
    return;
  }
  const uint wordsOfLane = laneBits / 32u;
  const uint chunksOfWord = 8u / width;
  for (uint index = 0; index < wordsOfLane; ++index) {
    uint word = 0;
    for (uint i = 0; i < chunksOfWord; ++i) {
      word |= packedFour(codes[index * chunksOfWord + i] >> shift, width) << (4u * i * width);
    }
    if (isStored) {
      storeWord(plane, at * wordsOfLane + index, word, 4u);
    }
  }
}

template <ushort Chunks>
inline void storeCodes(
    thread const uint4* codes, uint bits, device uchar* row, constant KVCodecPlane& plane, uint at, bool isStored) {
  uint shift = 0;
  while (shift < bits) {
    const uint width = planeWidth(bits, shift);
    const uint bytes = plane.headDim * width / 8u;
    storePlane<Chunks>(codes, shift, width, row, bytes, plane.lanes, at, isStored);
    row += bytes;
    shift += width;
  }
}

// The codes of four elements from `first` on.
inline uint4 loadCodes(device const uchar* row, uint bits, uint headDim, uint first) {
  uint4 codes = uint4(0u);
  uint shift = 0;
  while (shift < bits) {
    const uint width = planeWidth(bits, shift);
    for (uint i = 0; i < 4u; ++i) {
      const uint bit = (first + i) * width;
      codes[i] |= ((uint(row[bit / 8u]) >> (bit % 8u)) & ((1u << width) - 1u)) << shift;
    }
    row += headDim * width / 8u;
    shift += width;
  }
  // A byte of mlx1 has more bits than its code, and memory may hold anything.
  return codes & ((1u << bits) - 1u);
}
