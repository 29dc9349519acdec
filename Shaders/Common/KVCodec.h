// What all codecs share: codebooks, signs, and the normalization of a vector by a power of two.
#pragma once
#include "CacheAddress.h"
#include "KVCodecTypes.h"
#include "Mlx1Tables.h"
#include "TurboTables.h"
#include "WalshHadamard.h"

pipeline_constant(bool, kvIsTurbo, kKVCodecIsTurbo);  // otherwise mlx1, or the variant of it that is set
pipeline_constant(bool, kvIsUnrotated, kKVCodecIsUnrotated);
pipeline_constant(bool, kvIsAffine, kKVCodecIsAffine);
pipeline_constant(uint, kvKeyBits, kKVCodecKeyBits);
pipeline_constant(uint, kvValueBits, kKVCodecValueBits);
pipeline_constant(uint, kvKeyDim, kKVCodecKeyDim);
pipeline_constant(uint, kvValueDim, kKVCodecValueDim);
pipeline_constant(uint, kvElementType, kKVCodecElementType);
pipeline_constant(bool, kvIsVectorizedElements, kKVCodecIsVectorized);
pipeline_constant(bool, kvHasQuantizedKeys, kKVCodecHasQuantizedKeys);
pipeline_constant(bool, kvHasQuantizedValues, kKVCodecHasQuantizedValues);
pipeline_constant(bool, kvHasKeyMeans, kKVCodecHasKeyMeans);
pipeline_constant(bool, kvHasValueMeans, kKVCodecHasValueMeans);
pipeline_constant(bool, kvHasChannelScales, kKVCodecHasChannelScales);

// The parameters of keys or of values. Both are loaded and then selected: selecting an address would turn uniform loads
// into per-lane loads.
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

// The vector of which a lane has elements, and the first of them. Simdgroups after those of keys process values. A lane
// without a vector has the number of a head past the last one.
struct CodecVector {
  KVCodecPlane plane;
  bool isValue;
  bool isCoded;  // uniform over a simdgroup, as isValue
  uint head;
  uint lane;  // among those of the vector
  uint first;
  ulong element;  // the same, counted from the first head
};
inline CodecVector codecVector(
    constant KVCodecPlane& keys, constant KVCodecPlane& values, uint chunks, uint simdgroup, uint lane) {
  CodecVector result;
  result.isValue = kvHasValues && simdgroup >= keys.simdgroups;
  result.isCoded = result.isValue ? kvHasQuantizedValues : kvHasQuantizedKeys;
  result.plane = planeOf(keys, values, result.isValue, chunks);
  const uint lanes = result.plane.lanes;
  result.head = (result.isValue ? simdgroup - keys.simdgroups : simdgroup) * (32u / lanes) + lane / lanes;
  result.lane = lane % lanes;
  result.first = result.lane * 4u * chunks;
  result.element = ulong(result.head) * result.plane.headDim + result.first;
  return result;
}
// Whether values have a codebook of their own.
inline bool hasValueTable() {
  return kvHasValues && kvValueBits != kvKeyBits;
}

// The positive half of a codebook for numbers of variance 1. turbo's boundaries are the midpoints.
struct CodeBook {
  constant const float* levels;
  constant const float* boundaries;  // of mlx1
  uint halfCount;                    // entries in a half
};

inline CodeBook codeBook(uint bits) {
  const uint mlx1First = bits == 8u ? 56u : bits == 6u ? 24u : bits == 5u ? 8u : 0u;
  return CodeBook{
      kvIsTurbo ? kTurboCodebooks + (1u << (bits - 1u)) - 2u : kMlx1Codebooks + mlx1First, kMlx1Boundaries + mlx1First,
      1u << (bits - 1u)};
}

inline float codebookEntry(CodeBook book, uint code) {
  if (kvIsAffine) {
    return float(code) - 7.5f;
  }
  return code >= book.halfCount ? book.levels[code - book.halfCount] : -book.levels[book.halfCount - 1u - code];
}

// Fills a table with the codebook for `bits` bits; the threads share the work.
MNK_SHARED void fillCodebook(threadgroup float* levels, uint bits, uint index, uint threads) {
  const CodeBook book = codeBook(bits);
  for (uint code = index; code < (1u << bits); code += threads) {
    levels[code] = codebookEntry(book, code);
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
// The table for 512 elements is also used for 256. Other lengths have no signs.
inline uint mlx1Signs(uint length, uint first) {
  return length == 256u || length == 512u ? kMlx1Signs[first / 32u] >> (first % 32u) : 0u;
}
inline uint codecSigns(uint length, uint first) {
  return kvIsTurbo ? turboSigns(length, first) : kvIsAffine ? 0u : mlx1Signs(length, first);
}

// The number of scales of an mlx1 vector, one per block of elements.
inline uint mlx1Blocks(uint headDim) {
  return headDim == 512u && !kvIsAffine ? 2u : 1u;
}

// Bytes of the scales of a vector.
inline uint scaleBytes(uint headDim) {
  return kvIsTurbo ? 2u : 4u * mlx1Blocks(headDim);
}

// The stored scale of the elements of a vector from `first` on.
inline uint storedScale(device const uchar* scales, ulong vector, uint headDim, uint first) {
  if (kvIsTurbo) {
    return reinterpret_cast<device const ushort*>(scales)[vector];
  }
  const uint blocks = mlx1Blocks(headDim);
  // Not a division: past the end of a padded vector the block index must stay valid.
  const uint block = blocks == 2u && 2u * first >= headDim ? 1u : 0u;
  return reinterpret_cast<device const uint*>(scales)[vector * blocks + block];
}
// The factor for codebook entries that a stored scale represents.
inline float codebookScale(uint stored, uint headDim, float inverseRoot, float scaleFactor) {
  if (kvIsTurbo) {
    return float(as_type<half>(ushort(stored)));
  }
  const float scale = as_type<float>(stored);
  return mlx1Blocks(headDim) == 2u ? scale / scaleFactor : scale * inverseRoot;
}

// x * 2^power for x zero or positive and normal. Saturates to the largest finite number and flushes to zero.
inline float timesPowerOfTwo(float x, int power) {
  const uint bits = as_type<uint>(x);
  const int exponent = as_type<int>(bits >> 23) + power;
  if (bits == 0u || exponent <= 0) {
    return 0.0f;
  }
  return as_type<float>(exponent >= 255 ? 0x7f7fffffu : (bits & 0x7fffffu) | (as_type<uint>(exponent) << 23));
}

// Flushes subnormal numbers to zero on all devices, because some devices do so anyway.
inline float4 flushSubnormals(float4 x) {
  const uint4 exponents = as_type<uint4>(x) & 0x7f800000u;
  return float4(
      exponents.x == 0u ? 0.0f : x.x, exponents.y == 0u ? 0.0f : x.y, exponents.z == 0u ? 0.0f : x.z,
      exponents.w == 0u ? 0.0f : x.w);
}

// Whether elements are f16 without means or channel scales. With the largest element normalized to [2, 4), elements and
// their sums are then multiples of 2^-38, far from subnormal, and nothing needs to be flushed.
inline bool isNarrow() {
  return kvElementType == uint(kFloat16) && !kvHasKeyMeans && !kvHasValueMeans && !kvHasChannelScales;
}

// The power of two by which a vector was normalized so that its largest element is in [2, 4). Elements below 2^-125 or
// below 2^-100 of the largest are flushed, so that no sum or product is subnormal. Results are then the same on devices
// that flush subnormal numbers.
struct VectorExponent {
  int power;
  bool isFinite;
};

// The bits of the largest magnitude in a vector. Bits compare like the magnitudes; infinity and NaN compare largest.
template <ushort Chunks>
inline uint largestMagnitude(thread const float4* x, uint lanes) {
  uint largest = 0;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const uint4 bits = as_type<uint4>(x[i]) & 0x7fffffffu;
    largest = max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
  }
  return maxOverLanes(largest, lanes);
}

template <ushort Chunks>
MNK_SHARED VectorExponent normalizeExponent(thread float4* x, uint lanes) {
  const uint largest = largestMagnitude<Chunks>(x, lanes);
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
  return VectorExponent{isZero ? 0 : as_type<int>(exponent) - 128, isFinite};
}
