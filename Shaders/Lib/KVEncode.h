// Codes and scales of a vector that was turned by walshHadamard, but not yet divided by sqrt(headDim). Each lane has
// the codes of its own elements; all lanes of a vector have its scale.
#pragma once
#include "KVCodec.h"

// <x, c> and <c, c> of four elements.
inline float2 productsWith(float4 x, float4 c) {
  return float2(
      fma(x.y, c.y, x.x * c.x) + fma(x.w, c.w, x.z * c.z), fma(c.y, c.y, c.x * c.x) + fma(c.w, c.w, c.z * c.z));
}

// Over all elements of a vector, or of a block of it: neighbors first, then pairs of neighbors and so on. What comes
// out depends on the elements alone, not on how many of them a lane holds.
template <ushort Chunks>
inline float2 sumOfProducts(thread float2* products, uint lanes) {
  for (ushort h = 1; h < Chunks; h = ushort(h * 2)) {
    for (ushort i = 0; i < Chunks; i = ushort(i + 2 * h)) {
      products[i] += products[i + h];
    }
  }
  return sumOverLanes(products[0], lanes);
}

// Numbers below 2^-60 become zero, so that no product of two can be subnormal. Beside the vector's largest element they
// are far below what a float can tell.
inline float withoutDust(float x) {
  return (as_type<uint>(x) & 0x7fffffffu) < 0x21800000u ? 0.0f : x;
}

// The sum of squares over the lanes of a vector, or of a block of it.
template <ushort Chunks>
inline float energyOf(thread float4* y, uint lanes) {
  float2 products[Chunks];
  for (ushort i = 0; i < Chunks; ++i) {
    y[i] = float4(withoutDust(y[i].x), withoutDust(y[i].y), withoutDust(y[i].z), withoutDust(y[i].w));
    products[i] = productsWith(y[i], y[i]);
  }
  return sumOfProducts<Chunks>(products, lanes).x;
}

// The size g that gives the levels nearest in direction to u, of numbers u / g for g around 1.
template <ushort Chunks>
inline float bestFactor(thread const float4* u, CodeBook book, uint lanes, uint candidates, float spacing) {
  float bestFactor = 1.0f;
  float2 best = float2(0.0f, 1.0f);
  for (uint m = 0; m < candidates; ++m) {
    const float size = fma(spacing, float(m) - 0.5f * float(candidates - 1u), 1.0f);
    const float factor = 1.0f / size;
    float2 products[Chunks];
    for (ushort i = 0; i < Chunks; ++i) {
      products[i] = productsWith(u[i], levelsOf(book, codesOf(book, u[i] * factor)));
    }
    const float2 sums = sumOfProducts<Chunks>(products, lanes);
    // The cosine's square is sums.x^2 / sums.y up to a constant.
    if (sums.x * sums.x * best.y > best.x * best.x * sums.y) {
      best = sums;
      bestFactor = factor;
    }
  }
  return bestFactor;
}

// Gives the scale of levels for r = y / sqrt(headDim). y becomes numbers of variance 1.
template <ushort Chunks>
inline float encodeTurbo(
    thread float4* y, thread uint4* codes, constant KVCodecPlane& plane, uint bits, bool isUnbiased, uint candidates,
    float candidateSpacing) {
  const CodeBook book = codeBook(bits);
  const float length = float(plane.headDim);
  const float size = precise::sqrt(energyOf<Chunks>(y, plane.lanes) / length);
  const float inverse = size > 0.0f ? 1.0f / size : 0.0f;
  for (ushort i = 0; i < Chunks; ++i) {
    y[i] *= inverse;
  }
  float factor = 1.0f;
  if (candidates > 1u) {
    factor = bestFactor<Chunks>(y, book, plane.lanes, candidates, candidateSpacing * kTurboReach[bits]);
  }
  float2 products[Chunks];
  for (ushort i = 0; i < Chunks; ++i) {
    codes[i] = codesOf(book, y[i] * factor);
    products[i] = productsWith(y[i], levelsOf(book, codes[i]));
  }
  const float2 sums = sumOfProducts<Chunks>(products, plane.lanes);
  if (!(sums.x > 0.0f)) {
    return 0.0f;
  }
  return (isUnbiased ? length / sums.x : sums.x / sums.y) * size * plane.inverseRoot;
}

// Gives this lane's scale for the vector as it was before `power` was taken out. y becomes what is compared with
// boundaries.
template <ushort Chunks>
inline float encodeMlx1(thread float4* y, thread uint4* codes, constant KVCodecPlane& plane, uint bits, int power) {
  const CodeBook book = codeBook(bits);
  const uint blocks = mlx1Blocks(plane.headDim);
  const float length = float(plane.headDim / blocks);
  const float size = precise::sqrt(energyOf<Chunks>(y, plane.lanes / blocks) / length);
  const float scale = timesPowerOfTwo(blocks == 2u ? size * plane.inverseRoot : size, power);
  const float factor = scale > 1e-10f ? plane.scaleFactor / size : 0.0f;
  for (ushort i = 0; i < Chunks; ++i) {
    y[i] *= factor;
    codes[i] = codesOf(book, y[i]);
  }
  return scale;
}
