// The Walsh-Hadamard transform, in natural order, of a vector distributed over lanes. Each lane holds `Chunks` float4s
// of neighboring elements. The lanes of a vector are neighbors, and their number is a power of two; a simdgroup may
// hold several vectors. All lanes must participate; lanes without a vector hold zeros.
//
// A vector whose length is not a power of two has `m` blocks, whose size is the largest power of two that divides the
// length, at least 16. Each block is transformed, and then the vector is reflected across the blocks: block x_b becomes
// m * x_b - 2 * (x_0 + ... + x_m-1). Without the reflection, an outlier would stay in its block, out of reach of a
// codebook scaled for the whole vector.
//
// The transform only adds, subtracts and multiplies by integers, in an order that does not depend on the number of
// lanes. Unless a compiler reorders sums, every device computes the same bits.
#pragma once
#include "MetalCompat.h"

// The number of lanes that share a vector, a power of two. The length is a multiple of the elements per lane; the last
// lanes may have no elements.
inline uint lanesOf(uint length, uint chunks) {
  const uint least = length / (4u * chunks);
  return least > 16u ? 32u : least > 8u ? 16u : least > 4u ? 8u : least > 2u ? 4u : least > 1u ? 2u : 1u;
}

// Treats elements past the end of the vector as 0 and sets them to 0.
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
    if (Chunks <= 4 || 4u * h < block) {  // blocks have at least 16 elements, or are the whole vector
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
    // Multiplying by 1 or -1 is exact, so one fma computes the sum or the difference.
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

// The transform times `inverseRoot`, 1 / (m * sqrt(block)), which makes it orthonormal; for a power of two this is 1 /
// sqrt(length). The power of two in `inverseRoot` is applied first, so that no intermediate sum exceeds the norm of the
// vector. The rest is applied last.
template <ushort Chunks>
inline void hadamardRotate(thread float4* x, uint length, uint lanes, uint lane, float inverseRoot) {
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

// Flips the sign of element i if bit i of `signs` is set, for four elements.
inline float4 flipped(float4 x, uint signs) {
  const uint4 flips = (uint4(signs, signs >> 1, signs >> 2, signs >> 3) & 1u) << 31;
  return as_type<float4>(as_type<uint4>(x) ^ flips);
}

// Reductions over `lanes` neighboring lanes. Every lane uses the same tree, so all get the same bits.
template <typename T>
inline T sumOverLanes(T x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x += simd_shuffle_xor(x, ushort(distance));
  }
  return x;
}
inline uint maxOverLanes(uint x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x = max(x, simd_shuffle_xor(x, ushort(distance)));
  }
  return x;
}
inline uint orOverLanes(uint x, uint lanes) {
  for (uint distance = 1; distance < lanes; distance *= 2u) {
    x |= simd_shuffle_xor(x, ushort(distance));
  }
  return x;
}
