// Rows of codes in memory. mlx1 with 5, 6 or 8 bits stores one code per byte. All other codes are stored in bit planes
// whose widths are the powers of two in the number of bits, the widest first; see KVCodec.hpp.
#pragma once
#include "Elements.h"
#include "KVCodec.h"

// Whether rows of codes are aligned, so that a lane can load or store up to 16 bytes at once.
pipeline_constant(bool, kvHasAlignedCodes, kKVCodecHasAlignedCodes);
// The type of dense keys or values. Their alignment is that of the codes.
pipeline_constant(uint, kvDenseType, kKVCodecDenseType);

// The maximum number of bit planes, reached with 7 bits. It is a constant so that loops over planes unroll.
constant constexpr ushort kMaxPlanes = 3;

// The width of the plane that starts at bit `shift` of the codes: the largest power of two in the remaining bits.
inline uint planeWidth(uint bits, uint shift) {
  if (!kvIsTurbo) {
    return bits == 4u ? 4u : 8u;
  }
  const uint left = bits - shift;
  return left >= 8u ? 8u : left >= 4u ? 4u : left >= 2u ? 2u : 1u;
}

// Stores one bit plane of a vector's codes. `at` is the index of the lane within the vector.
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
    // The terms have disjoint bits, and shift-and-add is one instruction.
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
    // Lanes combine their bits into a word, and the first of them stores it.
    const uint lanesOfWord = min(8u / (Chunks * width), lanesOf(headDim, Chunks));
    words[0] = orOverLanes(words[0] << (at % lanesOfWord * 4u * Chunks * width), lanesOfWord);
    if (isStored && at % lanesOfWord == 0u) {
      const uint bytes = lanesOfWord * Chunks * width / 2u;
      const uint begin = at / lanesOfWord * bytes;
      // The last word of a plane may be only half used; rows with such planes are unaligned.
      storeBytes(plane + begin, min(bytes, headDim * width / 8u - begin), kvHasAlignedCodes, words);
    }
  }
}

template <ushort Chunks>
inline void storeCodes(thread const uint4* codes, uint bits, device uchar* row, uint headDim, uint at, bool isStored) {
  uint shift = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMaxPlanes; ++plane) {
    if (shift < bits) {
      storePlane<Chunks>(codes, bits, shift, row, headDim, at, isStored);
      const uint width = planeWidth(bits, shift);
      row += headDim * width / 8u;
      shift += width;
    }
  }
}

// Loads up to 16 bytes of a plane from `begin` on, a power of two, at most `atOnce` at a time. `atOnce` is at least 2,
// or all of them, and divides `planeBytes`. If vectors are padded, the last bytes of the plane are loaded again in
// place of those past its end: without a branch, the compiler can hoist the loads.
template <bool IsPadded>
inline void loadInSteps(
    device const uchar* plane, uint begin, uint bytes, uint atOnce, uint planeBytes, bool isAligned,
    thread uint* words) {
  const uint step = min(bytes, atOnce);
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    if (i * step < bytes) {
      const uint at = IsPadded ? min(begin + i * step, planeBytes - step) : begin + i * step;
      if (step != 2u || bytes == 2u) {
        loadBytes(plane + at, step, isAligned, words + i * step / 4u);
      } else {
        uint two;
        loadBytes(plane + at, 2u, isAligned, &two);
        words[i / 2] = i % 2 == 0 ? two : words[i / 2] | two << 16;
      }
    }
  }
}

// Loads the words of each plane for the codes of `Elements` elements from `first` on, a multiple of `Elements`. If
// vectors are padded, codes from `headDim` on are undefined.
template <ushort Elements, bool IsPadded>
MNK_SHARED void loadCodes(
    device const uchar* row, uint bits, uint headDim, uint first, bool isAligned, thread uint* words) {
  uint shift = 0;
  // The alignment of turbo's planes and rows: the largest power of two that divides the size of the narrowest plane.
  const uint most = kvIsTurbo ? min((headDim & (~headDim + 1u)) * (bits & (~bits + 1u)) / 8u, 16u) : 16u;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMaxPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint bytes = max(Elements * width / 8u, 1u);
      MNK_UNROLL
      for (ushort i = 0; i < (Elements + 15) / 16; ++i) {
        if (16u * i < bytes) {
          loadInSteps<IsPadded>(
              row, first * width / 8u + 16u * i, min(bytes, 16u), most, headDim * width / 8u, isAligned,
              words + 4u * i);
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

// Extracts code `e` from the words that loadCodes loaded.
template <ushort Elements>
inline uint codeAt(thread const uint* words, uint e, uint bits) {
  uint code = 0;
  uint shift = 0;
  MNK_UNROLL
  for (ushort plane = 0; plane < kMaxPlanes; ++plane) {
    if (shift < bits) {
      const uint width = planeWidth(bits, shift);
      const uint bit = e * width;
      code |= ((words[bit / 32u] >> (bit % 32u)) & ((1u << width) - 1u)) << shift;
      words += (Elements * width + 31u) / 32u;
      shift += width;
    }
  }
  // Mlx1 stores a code in a whole byte, whose unused bits may be set in uninitialized memory.
  return code & ((1u << bits) - 1u);
}

template <ushort Elements>
inline float4 dequantizeFour(thread const uint* words, ushort chunk, uint bits, threadgroup const float* levels) {
  const uint first = 4u * chunk;
  return float4(
      levels[codeAt<Elements>(words, first, bits)], levels[codeAt<Elements>(words, first + 1u, bits)],
      levels[codeAt<Elements>(words, first + 2u, bits)], levels[codeAt<Elements>(words, first + 3u, bits)]);
}
