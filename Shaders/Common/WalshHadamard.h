// A vector that lanes of a simdgroup share, each with `Chunks` float4s of neighboring elements, and its Walsh-Hadamard
// transform in natural order. Lanes of one vector are neighbors and a power of two; a simdgroup may hold several
// vectors. All lanes must take part, those that have no vector with zeros.
//
// The transform only adds and subtracts, in an order that does not depend on how many lanes there are: unless a
// compiler reorders sums, every device gives the same bits.
#pragma once
#include "MetalCompat.h"

template <ushort Chunks>
MNK_SHARED void walshHadamard(thread float4* x, uint lanes, uint lane) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    const float4 a = x[i];
    const float4 b = float4(a.x + a.y, a.x - a.y, a.z + a.w, a.z - a.w);
    x[i] = float4(b.x + b.z, b.y + b.w, b.x - b.z, b.y - b.w);
  }
  MNK_UNROLL
  for (ushort h = 1; h < Chunks; h = ushort(h * 2)) {
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
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    // Times 1 or -1 is exact, so that one multiply-add gives the sum or the difference.
    const float sign = (lane & distance) != 0u ? -1.0f : 1.0f;
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      x[i] = simd_shuffle_xor(x[i], ushort(distance)) + x[i] * sign;
    }
  }
}

inline float powerOfTwoIn(float x) {
  return as_type<float>(as_type<uint>(x) & 0x7f800000u);
}
inline float withoutPowerOfTwo(float x) {
  return as_type<float>((as_type<uint>(x) & 0x7fffffu) | 0x3f800000u);
}

// The transform times `inverseRoot`, which is 1 / sqrt(n). The power of two in it comes first, so that no sum on the
// way is larger than the vector is long; the rest, 1 or sqrt(2), comes last.
template <ushort Chunks>
inline void turned(thread float4* x, uint lanes, uint lane, float inverseRoot) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= powerOfTwoIn(inverseRoot);
  }
  walshHadamard<Chunks>(x, lanes, lane);
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
