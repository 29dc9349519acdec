// What the two codecs of quantized caches share: levels, signs, and the size of a vector taken out as a power of two.
#pragma once
#include "../Types/KVCodecTypes.h"
#include "Mlx1Tables.h"
#include "TurboTables.h"
#include "WalshHadamard.h"

pipeline_constant(bool, kvIsTurbo, kKVCodecIsTurbo);
pipeline_constant(uint, kvKeyBits, kKVCodecKeyBits);
pipeline_constant(uint, kvValueBits, kKVCodecValueBits);
pipeline_constant(uint, kvElementType, kKVCodecElementType);
pipeline_constant(bool, kvIsVectorizedElements, kKVCodecIsVectorized);
pipeline_constant(bool, kvHasKeyMeans, kKVCodecHasKeyMeans);
pipeline_constant(bool, kvHasValueMeans, kKVCodecHasValueMeans);
pipeline_constant(bool, kvHasChannelScales, kKVCodecHasChannelScales);

// Levels of numbers of variance 1, and the boundaries between them: positive halves.
struct CodeBook {
  constant const float* levels;
  constant const float* boundaries;
  uint halfCount;  // levels in a half
};

inline CodeBook codeBook(uint bits) {
  if (kvIsTurbo) {
    const uint first = (1u << (bits - 1u)) - 2u;
    return CodeBook{kTurboLevels + first, kTurboBoundaries + first, 1u << (bits - 1u)};
  }
  const uint first = bits == 8u ? 56u : bits == 6u ? 24u : bits == 5u ? 8u : 0u;
  return CodeBook{kMlx1Levels + first, kMlx1Boundaries + first, 1u << (bits - 1u)};
}

// The index of the level for x: how many boundaries lie below it. Numbers are compared by their bits, which do not
// change their order where they are positive, so that no compiler can take a liberty.
inline uint codeOf(CodeBook book, float x) {
  const bool isPositive = as_type<int>(x) > 0;
  // On a boundary the lower index wins, which for a negative number is the one farther from zero.
  const uint end = (as_type<uint>(x) & 0x7fffffffu) + (isPositive ? 0u : 1u);
  uint below = 0;
  for (uint step = book.halfCount >> 1; step != 0u; step >>= 1) {
    below += as_type<uint>(book.boundaries[below + step - 1u]) < end ? step : 0u;
  }
  return isPositive ? book.halfCount + below : book.halfCount - 1u - below;
}

inline float levelOf(CodeBook book, uint code) {
  return code >= book.halfCount ? book.levels[code - book.halfCount] : -book.levels[book.halfCount - 1u - code];
}

inline uint4 codesOf(CodeBook book, float4 x) {
  return uint4(codeOf(book, x.x), codeOf(book, x.y), codeOf(book, x.z), codeOf(book, x.w));
}
inline float4 levelsOf(CodeBook book, uint4 codes) {
  return float4(levelOf(book, codes.x), levelOf(book, codes.y), levelOf(book, codes.z), levelOf(book, codes.w));
}

// Signs of the four elements from `first` on, of a vector of the given length.
inline uint turboSigns(uint length, uint first) {
  return kTurboSigns[length / 32u - 1u + first / 32u] >> (first % 32u);
}
// A table for 512 elements serves 256 as well. Other lengths have no signs.
inline uint mlx1Signs(uint length, uint first) {
  return length == 256u || length == 512u ? kMlx1Signs[first / 32u] >> (first % 32u) : 0u;
}
inline uint codecSigns(uint length, uint first) {
  return kvIsTurbo ? turboSigns(length, first) : mlx1Signs(length, first);
}

// How many scales a vector of mlx1 has, each for a block of its elements.
inline uint mlx1Blocks(uint headDim) {
  return headDim == 512u ? 2u : 1u;
}

// Bytes of the scales of a vector.
inline uint scaleBytes(uint headDim) {
  return kvIsTurbo ? 2u : 4u * mlx1Blocks(headDim);
}

// The scale of the elements from `first` on of a vector, as it is stored.
inline uint storedScale(device const uchar* scales, ulong vector, uint headDim, uint first) {
  if (kvIsTurbo) {
    return reinterpret_cast<device const ushort*>(scales)[vector];
  }
  const uint blocks = mlx1Blocks(headDim);
  return reinterpret_cast<device const uint*>(scales)[vector * blocks + first * blocks / headDim];
}
// What their levels are multiplied by.
inline float scaleOfLevels(uint stored, uint headDim, float inverseRoot, float scaleFactor) {
  if (kvIsTurbo) {
    return float(as_type<half>(ushort(stored)));
  }
  const float scale = as_type<float>(stored);
  return mlx1Blocks(headDim) == 2u ? scale / scaleFactor : scale * inverseRoot;
}

// A positive normal number or zero, times 2^power. What is too large becomes the largest number, what is too small
// zero.
inline float timesPowerOfTwo(float x, int power) {
  const uint bits = as_type<uint>(x);
  const int exponent = as_type<int>(bits >> 23) + power;
  if (bits == 0u || exponent <= 0) {
    return 0.0f;
  }
  return as_type<float>(exponent >= 255 ? 0x7f7fffffu : (bits & 0x7fffffu) | (as_type<uint>(exponent) << 23));
}

// Subnormal numbers become zero, as they do by themselves on devices that flush them.
inline float4 withoutSubnormal(float4 x) {
  const uint4 exponents = as_type<uint4>(x) & 0x7f800000u;
  return float4(
      exponents.x == 0u ? 0.0f : x.x, exponents.y == 0u ? 0.0f : x.y, exponents.z == 0u ? 0.0f : x.z,
      exponents.w == 0u ? 0.0f : x.w);
}

// A vector whose largest element lies in [2, 4), and the power of two that was taken out. No number that arises from
// its sums can be subnormal: elements that are less than 2^-100 of the largest are left out, and so are those below
// 2^-125. Results are then the same on devices that flush subnormal numbers.
struct VectorSize {
  int power;
  bool isFinite;
};

template <ushort Chunks>
inline VectorSize takeOutSize(thread float4* x, uint lanes) {
  uint largest = 0;
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 bits = as_type<uint4>(x[i]) & 0x7fffffffu;
    largest = max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
  }
  largest = largestOverLanes(largest, lanes);
  const bool isFinite = largest < 0x7f800000u;
  const uint exponent = largest >> 23;
  const bool isZero = !isFinite || exponent < 2u;
  const uint least = exponent > 102u ? exponent - 100u : 2u;
  const float factor = as_type<float>(isZero ? 0x3f800000u : (255u - exponent) << 23);
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 exponents = (as_type<uint4>(x[i]) >> 23) & 0xffu;
    const float4 scaled = x[i] * factor;
    x[i] = float4(
        isZero || exponents.x < least ? 0.0f : scaled.x, isZero || exponents.y < least ? 0.0f : scaled.y,
        isZero || exponents.z < least ? 0.0f : scaled.z, isZero || exponents.w < least ? 0.0f : scaled.w);
  }
  return VectorSize{isZero ? 0 : as_type<int>(exponent) - 128, isFinite};
}
