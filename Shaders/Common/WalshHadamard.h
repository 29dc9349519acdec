// A vector that lanes of a simdgroup share, each with `Chunks` float4s of neighboring elements, and its Walsh-Hadamard
// transform in natural order. Lanes of one vector are neighbors and a power of two; a simdgroup may hold several
// vectors. All lanes must take part, those that have no vector with zeros.
//
// A length that is no power of two has `m` blocks of the largest one that divides it, 16 elements or more. Each block
// is transformed, and then the vector is reflected across them: blocks x_b become m * x_b - 2 * (x_0 + ... + x_m-1).
// Without the reflection an outlier would stay in its block, where levels made for the whole vector do not reach it.
//
// The transform only adds, subtracts and multiplies by whole numbers, in an order that does not depend on how many
// lanes there are: unless a compiler reorders sums, every device gives the same bits.
#pragma once
#include "MetalCompat.h"

// Lanes that share a vector whose length is a multiple of what a lane holds. The last of them may have no elements.
inline uint lanesOf(uint length, uint chunks) {
  const uint least = length / (4u * chunks);
  return least > 16u ? 32u : least > 8u ? 16u : least > 4u ? 8u : least > 2u ? 4u : least > 1u ? 2u : 1u;
}

// Elements past the vector's end count as 0 and become 0.
template <ushort Chunks>
MNK_SHARED void reflectBlocks(thread float4* x, uint length, uint block, uint lanes, uint lane) {
  const uint first = lane % lanes * (4u * Chunks);
  float4 sums[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    sums[i] = first + 4u * i < length ? float4(x[i]) : float4(0.0f);
  }
  MNK_UNROLL
  for (ushort h = 1; h < Chunks; h = ushort(h * 2)) {
    if (4u * h >= block) {
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        if ((i & h) == 0 && i + h < Chunks) {
          sums[i] += sums[i + h];
          sums[i + h] = sums[i];
        }
      }
    }
  }
  for (uint distance = max(block / (4u * Chunks), 1u); distance < lanes; distance *= 2u) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      sums[i] += simd_shuffle_xor(sums[i], ushort(distance));
    }
  }
  const float4 count = float4(float(length / block));
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = first + 4u * i < length ? fma(count, x[i], -2.0f * sums[i]) : float4(0.0f);
  }
}

template <ushort Chunks>
MNK_SHARED void walshHadamard(thread float4* x, uint length, uint lanes, uint lane) {
  const uint block = length & (~length + 1u);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const float4 a = x[i];
    const float4 b = float4(a.x + a.y, a.x - a.y, a.z + a.w, a.z - a.w);
    x[i] = float4(b.x + b.z, b.y + b.w, b.x - b.z, b.y - b.w);
  }
  MNK_UNROLL
  for (ushort h = 1; h < Chunks; h = ushort(h * 2)) {
    if (Chunks <= 4 || 4u * h < block) {  // no block is shorter than what four float4s hold, unless it is the vector
      MNK_UNROLL
      for (ushort i = 0; i < Chunks; ++i) {
        if ((i & h) == 0) {
          const float4 a = x[i];
          const float4 b = x[i + h];
          x[i] = a + b;
          x[i + h] = a - b;
        }
      }
    }
  }
  for (uint distance = 1; distance < lanes && 4u * Chunks * distance < block; distance *= 2u) {
    // Times 1 or -1 is exact, so that one multiply-add gives the sum or the difference.
    const float sign = (lane & distance) != 0u ? -1.0f : 1.0f;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      x[i] = simd_shuffle_xor(x[i], ushort(distance)) + x[i] * sign;
    }
  }
  if (block != length) {
    reflectBlocks<Chunks>(x, length, block, lanes, lane);
  }
}

inline float powerOfTwoIn(float x) {
  return as_type<float>(as_type<uint>(x) & 0x7f800000u);
}
inline float withoutPowerOfTwo(float x) {
  return as_type<float>((as_type<uint>(x) & 0x7fffffu) | 0x3f800000u);
}

// The transform times `inverseRoot`, which makes it orthonormal: 1 / (m * sqrt(block)), and so 1 / sqrt(length) for a
// power of two. The power of two in it comes first, so that no sum on the way is larger than the vector is long; the
// rest comes last.
template <ushort Chunks>
inline void turned(thread float4* x, uint length, uint lanes, uint lane, float inverseRoot) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= powerOfTwoIn(inverseRoot);
  }
  walshHadamard<Chunks>(x, length, lanes, lane);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= withoutPowerOfTwo(inverseRoot);
  }
}

// Flips the signs of four elements whose bits are set, from bit 0 on.
inline float4 flipped(float4 x, uint signs) {
  const uint4 flips = (uint4(signs, signs >> 1, signs >> 2, signs >> 3) & 1u) << 31;
  return as_type<float4>(as_type<uint4>(x) ^ flips);
}

// Over `lanes` neighbors, in the same tree for each of them, so that all get the same bits.
template <typename T>
inline T sumOverLanes(T x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x += simd_shuffle_xor(x, ushort(distance));
  }
  return x;
}
inline uint largestOverLanes(uint x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x = max(x, simd_shuffle_xor(x, ushort(distance)));
  }
  return x;
}
inline uint unionOverLanes(uint x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x |= simd_shuffle_xor(x, ushort(distance));
  }
  return x;
}
