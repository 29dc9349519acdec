// What the two codecs of quantized caches share: levels, signs, and the size of a vector taken out as a power of two.
#pragma once
#include "KVCodecTypes.h"
#include "Mlx1Tables.h"
#include "TurboTables.h"
#include "WalshHadamard.h"

pipeline_constant(bool, kvIsTurbo, kKVCodecIsTurbo);
pipeline_constant(uint, kvKeyBits, kKVCodecKeyBits);
pipeline_constant(uint, kvValueBits, kKVCodecValueBits);
pipeline_constant(uint, kvKeyDim, kKVCodecKeyDim);
pipeline_constant(uint, kvValueDim, kKVCodecValueDim);
pipeline_constant(uint, kvElementType, kKVCodecElementType);
pipeline_constant(bool, kvIsVectorizedElements, kKVCodecIsVectorized);
pipeline_constant(bool, kvHasCodedKeys, kKVCodecHasCodedKeys);
pipeline_constant(bool, kvHasCodedValues, kKVCodecHasCodedValues);
pipeline_constant(bool, kvHasKeyMeans, kKVCodecHasKeyMeans);
pipeline_constant(bool, kvHasValueMeans, kKVCodecHasValueMeans);
pipeline_constant(bool, kvHasChannelScales, kKVCodecHasChannelScales);

// Keys or values. All parameters are loaded before one is chosen: a choice of addresses would be loaded by each lane.
inline KVCodecPlane planeOf(constant KVCodecPlane& keys, constant KVCodecPlane& values, bool isValue, uint chunks) {
  const uint2 bytes = uint2(keys.codeBytes, values.codeBytes);
  const float2 roots = float2(keys.inverseRoot, values.inverseRoot);
  const float2 factors = float2(keys.scaleFactor, values.scaleFactor);
  return KVCodecPlane{
      isValue ? kvValueDim : kvKeyDim,
      isValue ? lanesOf(kvValueDim, chunks) : lanesOf(kvKeyDim, chunks),
      0,
      isValue ? bytes.y : bytes.x,
      isValue ? roots.y : roots.x,
      isValue ? factors.y : factors.x};
}

// Levels of numbers of variance 1, the positive half. The boundaries between turbo's are their midpoints.
struct CodeBook {
  constant const float* levels;
  constant const float* boundaries;  // of mlx1
  uint halfCount;                    // levels in a half
};

inline CodeBook codeBook(uint bits) {
  const uint mlx1First = bits == 8u ? 56u : bits == 6u ? 24u : bits == 5u ? 8u : 0u;
  return CodeBook{
      kvIsTurbo ? kTurboLevels + (1u << (bits - 1u)) - 2u : kMlx1Levels + mlx1First, kMlx1Boundaries + mlx1First,
      1u << (bits - 1u)};
}

inline float levelOf(CodeBook book, uint code) {
  return code >= book.halfCount ? book.levels[code - book.halfCount] : -book.levels[book.halfCount - 1u - code];
}

// Writes the levels of all codes of `bits` bits; the threads share the work.
MNK_SHARED void fillLevels(threadgroup float* levels, uint bits, uint index, uint threads) {
  const CodeBook book = codeBook(bits);
  for (uint code = index; code < (1u << bits); code += threads) {
    levels[code] = levelOf(book, code);
  }
}

// Signs of the four elements from `first` on, of a vector of the given length.
inline uint turboSigns(uint length, uint first) {
  uint words = length / 32u - 1u;  // before those of this length
  if ((length & (length - 1u)) != 0u) {
    words = length == 80u ? 31u : length == 96u ? 34u : length == 112u ? 37u : 41u;
  }
  return kTurboSigns[words + first / 32u] >> (first % 32u);
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
  // Past the end of a padded vector, the scale is the one of its first block.
  const uint block = blocks == 2u && 2u * first >= headDim ? 1u : 0u;
  return reinterpret_cast<device const uint*>(scales)[vector * blocks + block];
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

// Elements are f16 as they were given. Where the largest lies in [2, 4), they and their sums are multiples of 2^-38:
// far from subnormal, so that nothing has to be left out.
inline bool isNarrow() {
  return kvElementType == uint(kFloat16) && !kvHasKeyMeans && !kvHasValueMeans && !kvHasChannelScales;
}

// A vector whose largest element lies in [2, 4), and the power of two that was taken out. No number that arises from
// its sums can be subnormal: elements that are less than 2^-100 of the largest are left out, and so are those below
// 2^-125. Results are then the same on devices that flush subnormal numbers.
struct VectorSize {
  int power;
  bool isFinite;
};

template <ushort Chunks>
MNK_SHARED VectorSize takeOutSize(thread float4* x, uint lanes) {
  uint largest = 0;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 bits = as_type<uint4>(x[i]) & 0x7fffffffu;
    largest = max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
  }
  largest = largestOverLanes(largest, lanes);
  const bool isFinite = largest < 0x7f800000u;
  const uint exponent = largest >> 23;
  const bool isZero = !isFinite || exponent < 2u;
  const uint least = isZero ? 256u : exponent > 102u ? exponent - 100u : 2u;
  const float factor = as_type<float>(isZero ? 0x3f800000u : (255u - exponent) << 23);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 exponents = (as_type<uint4>(x[i]) >> 23) & 0xffu;
    const float4 scaled = x[i] * factor;
    if (isNarrow() && !isZero) {
      x[i] = scaled;
    } else {
      x[i] = float4(
          exponents.x < least ? 0.0f : scaled.x, exponents.y < least ? 0.0f : scaled.y,
          exponents.z < least ? 0.0f : scaled.z, exponents.w < least ? 0.0f : scaled.w);
    }
  }
  return VectorSize{isZero ? 0 : as_type<int>(exponent) - 128, isFinite};
}
