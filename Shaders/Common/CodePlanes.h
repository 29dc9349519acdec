// Rows of codes in memory. mlx1 with 5, 6 and 8 bits has a byte for each code; otherwise codes lie in planes by the
// binary digits of their bits, the widest first: see KVCodec.hpp.
#pragma once
#include "FourElements.h"
#include "KVCodec.h"

// Up to 16 bytes of a row can be loaded or stored at once, as far as a lane has them.
pipeline_constant(bool, kvHasAlignedCodes, kKVCodecHasAlignedCodes);
// Of keys or values that are stored as elements. They are as aligned as codes.
pipeline_constant(uint, kvDenseType, kKVCodecDenseType);

// Planes of codes that a vector has at most: of 7 bits. A fixed number, so that loops over them unroll.
constant constexpr ushort kMostPlanes = 3;

// The width of the plane that holds the low bits of codes from `shift` on: the highest power of two in what is left.
inline uint planeWidth(uint bits, uint shift) {
  if (!kvIsTurbo) {
    return bits == 4u ? 4u : 8u;
  }
  const uint left = bits - shift;
  return left >= 8u ? 8u : left >= 4u ? 4u : left >= 2u ? 2u : 1u;
}

// One plane of a vector's codes. `at` counts the lanes of the vector.
template <ushort Chunks>
inline void storePlane(
    thread const uint4* codes, uint bits, uint shift, device uchar* plane, uint headDim, uint at, bool isStored) {
  const uint width = planeWidth(bits, shift);
  uint words[Chunks] = {};
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    uint4 low = codes[i] >> shift;
    if (shift + width < bits) {
      low &= (1u << width) - 1u;
    }
    // No two have a bit in common, and a sum takes one instruction with the shift.
    const uint four = low.x + (low.y << width) + (low.z << (2u * width)) + (low.w << (3u * width));
    words[i * width / 8u] += four << (4u * i * width % 32u);
  }
  const uint laneBytes = Chunks * width / 2u;
  if (Chunks * width >= 8u) {
    MNK_UNROLL
    for (ushort i = 0; i < (Chunks + 3) / 4; ++i) {
      if (isStored && 16u * i < laneBytes) {
        storeBytes(plane + at * laneBytes + 16u * i, min(laneBytes, 16u), kvHasAlignedCodes, words + 4u * i);
      }
    }
  } else {
    // Lanes put their bits together, and the first of them stores the word.
    const uint lanesOfWord = min(8u / (Chunks * width), lanesOf(headDim, Chunks));
    words[0] = unionOverLanes(words[0] << (at % lanesOfWord * 4u * Chunks * width), lanesOfWord);
    if (isStored && at % lanesOfWord == 0u) {
      const uint bytes = lanesOfWord * Chunks * width / 2u;
      const uint begin = at / lanesOfWord * bytes;
      // The last word of a plane may be half a word; rows of such planes are not aligned.
      storeBytes(plane + begin, min(bytes, headDim * width / 8u - begin), kvHasAlignedCodes, words);
    }
  }
}

template <ushort Chunks>
inline void storeCodes(thread const uint4* codes, uint bits, device uchar* row, uint headDim, uint at, bool isStored) {
  uint shift = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMostPlanes; ++plane) {
    if (shift < bits) {
      storePlane<Chunks>(codes, bits, shift, row, headDim, at, isStored);
      const uint width = planeWidth(bits, shift);
      row += headDim * width / 8u;
      shift += width;
    }
  }
}

// `bytes` bytes, two at once. Those from `end` on, an even number, are 0 and not loaded.
MNK_SHARED void loadByTwos(device const uchar* from, uint bytes, uint end, bool isAligned, thread uint* words) {
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    if (2u * i < bytes) {
      uint two = 0;
      if (2u * i < end) {
        loadBytes(from + 2u * i, 2u, isAligned, &two);
      }
      words[i / 2] = i % 2 == 0 ? two : words[i / 2] | two << 16;
    }
  }
}

// Up to 16 bytes, a power of two, of which `atOnce` can be loaded at once: at least two, or all.
inline void loadInSteps(device const uchar* from, uint bytes, uint atOnce, bool isAligned, thread uint* words) {
  if (bytes <= atOnce) {
    loadBytes(from, bytes, isAligned, words);
  } else if (atOnce == 8u) {
    loadBytes(from, 8u, isAligned, words);
    loadBytes(from + 8, 8u, isAligned, words + 2);
  } else if (atOnce == 4u) {
    MNK_UNROLL
    for (ushort i = 0; i < 4; ++i) {
      if (4u * i < bytes) {
        loadBytes(from + 4u * i, 4u, isAligned, words + i);
      }
    }
  } else {
    loadByTwos(from, bytes, bytes, isAligned, words);
  }
}

// The codes of `Elements` neighboring elements from `first` on, which is a multiple of that: the words of each plane.
// Where vectors are padded, codes from `headDim` on are 0 and not loaded.
template <ushort Elements, bool IsPadded>
MNK_SHARED void loadCodes(
    device const uchar* row, uint bits, uint headDim, uint first, bool isAligned, thread uint* words) {
  uint shift = 0;
  // Planes of turbo, and so rows, begin at multiples of the power of two in the narrowest one's bytes.
  const uint most = kvIsTurbo ? min((headDim & (~headDim + 1u)) * (bits & (~bits + 1u)) / 8u, 16u) : 16u;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMostPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint bytes = max(Elements * width / 8u, 1u);
      MNK_UNROLL
      for (ushort i = 0; i < (Elements + 15) / 16; ++i) {
        if (16u * i < bytes) {
          const uint begin = first * width / 8u + 16u * i;
          const uint planeBytes = headDim * width / 8u;
          if (IsPadded && begin + min(bytes, 16u) > planeBytes) {
            loadByTwos(row + begin, min(bytes, 16u), max(planeBytes, begin) - begin, isAligned, words + 4u * i);
          } else {
            loadInSteps(row + begin, min(bytes, 16u), most, isAligned, words + 4u * i);
          }
        }
      }
      if (Elements * width < 8u) {
        words[0] >>= first * width % 8u;
      }
      row += headDim * width / 8u;
      words += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
}

// A code of those.
template <ushort Elements>
inline uint codeAt(thread const uint* words, uint e, uint bits) {
  uint code = 0;
  uint shift = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMostPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint bit = e * width;
      code |= ((words[bit / 32u] >> (bit % 32u)) & ((1u << width) - 1u)) << shift;
      words += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  return code & ((1u << bits) - 1u);  // a byte of mlx1 has more bits than its code, and memory may hold anything
}

template <ushort Elements>
inline float4 levelsOfCodes(thread const uint* words, ushort chunk, uint bits, threadgroup const float* levels) {
  const uint first = 4u * chunk;
  return float4(
      levels[codeAt<Elements>(words, first, bits)], levels[codeAt<Elements>(words, first + 1u, bits)],
      levels[codeAt<Elements>(words, first + 2u, bits)], levels[codeAt<Elements>(words, first + 3u, bits)]);
}
