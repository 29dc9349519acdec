// Batched shuffles and vector operations. The Host device, on which each shuffle is expensive and vectors are wide, has
// its own implementation.
#pragma once
#include "MetalCompat.h"

#if MNK_BATCHED_SHUFFLES
MNK_USE_BATCHED_SHUFFLES
#else

inline void exchangeXor(thread float* x, ushort n, ushort distance) {
  MNK_UNROLL
  for (ushort i = 0; i < n; ++i) {
    x[i] = simd_shuffle_xor(x[i], distance);
  }
}

// Gathers x from N lanes: `first`, `first + stride`, and so on.
template <ushort N>
inline void gatherLanes(thread float* into, float x, ushort first, ushort stride) {
  MNK_UNROLL
  for (ushort i = 0; i < N; ++i) {
    into[i] = simd_shuffle(x, ushort(first + i * stride));
  }
}

// Reductions over the lanes whose index bits from `first` to below `end` vary.
inline float largestOver(float x, ushort first, ushort end) {
  for (ushort step = first; step < end; step = ushort(step * 2)) {
    x = max(x, simd_shuffle_xor(x, step));
  }
  return x;
}
inline float sumOver(float x, ushort first, ushort end) {
  for (ushort step = first; step < end; step = ushort(step * 2)) {
    x += simd_shuffle_xor(x, step);
  }
  return x;
}

#endif

#if MNK_HAS_WIDE_VECTORS
MNK_USE_WIDE_VECTORS
#else
template <ushort N>
using floats = vec<float, N>;
#define MNK_PREFETCH(address)
#define MNK_GATHER_SHARES(x, n, lanes)

// Adds N fields of `width` bits to `codes`, starting with field `first`.
template <ushort N>
inline void addFields(thread uint* codes, thread const uint* words, uint first, uint width, uint shift) {
  MNK_UNROLL
  for (ushort i = 0; i < N; ++i) {
    const uint bit = (first + i) * width;
    codes[i] |= ((words[bit / 32u] >> (bit % 32u)) & ((1u << width) - 1u)) << shift;
  }
}
#endif

// Dot products, kept in a form that is cheap to accumulate.
inline float productsOf(float4 a, float4 b) {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)));
}
inline float addedProducts(float sum, float4 a, float4 b) {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}
inline float totalOf(float sum) {
  return sum;
}

inline void setHalves(thread float4& x, thread const uint* words) {
  x = float4(as_type<half4>(uint2(words[0], words[1])));
}
