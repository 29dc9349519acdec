// Computes the codes and the scale of a vector: after walshHadamard, before the multiplication by inverseRoot, or not
// rotated at all (kvIsUnrotated). Each lane has the codes of its own elements; all lanes of a vector have its scale.
#pragma once
#include "CodeSearch.h"

pipeline_constant(bool, kvHasSearch, kKVCacheQuantizeHasSearch);

// <x, c> and <c, c> of four elements.
inline float2 productsWith(float4 x, float4 c) {
  return float2(
      fma(x.y, c.y, x.x * c.x) + fma(x.w, c.w, x.z * c.z), fma(c.y, c.y, c.x * c.x) + fma(c.w, c.w, c.z * c.z));
}

// Sums the chunks of a lane pairwise: neighbors, then pairs of neighbors, and so on. Sums over lanes continue the same
// tree, so the result depends only on the elements, not on how many of them a lane holds.
template <ushort Chunks, typename T>
inline T sumOfChunks(thread T* x) {
  MNK_UNROLL
  for (ushort h = 1; h < Chunks; h = ushort(h * 2)) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; i = ushort(i + 2 * h)) {
      x[i] += x[i + h];
    }
  }
  return x[0];
}

// Flushes numbers below 2^-60 to zero, so that no product of two is subnormal. Next to the vector's largest element
// they are below the precision of a float.
inline float flushTiny(float x) {
  return (as_type<uint>(x) & 0x7fffffffu) < 0x21800000u ? 0.0f : x;
}

// The sum of squares over the lanes of a vector, or of one block of it. Flushes tiny elements first.
template <ushort Chunks>
inline float sumOfSquares(thread float4* y, uint lanes) {
  float squares[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (!isNarrow()) {
      y[i] = float4(flushTiny(y[i].x), flushTiny(y[i].y), flushTiny(y[i].z), flushTiny(y[i].w));
    }
    squares[i] = productsWith(y[i], y[i]).x;
  }
  return sumOverLanes(sumOfChunks<Chunks>(squares), lanes);
}

// <u, c> and <c, c> over the elements of a lane; 0 for a lane without elements.
template <ushort Chunks>
inline float2 productsOver(thread const float4* u, thread const float4* c, bool hasElements) {
  float2 products[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    products[i] = productsWith(u[i], c[i]);
  }
  const float2 sums = sumOfChunks<Chunks>(products);
  return hasElements ? float2(sums) : float2(0.0f);
}

// The codes, times four, of u times a factor, and their codebook entries.
template <ushort Chunks>
inline void quantized(
    threadgroup const float* tables, thread const float4* u, constant const float* guess, uint bits, float factor,
    thread uint4* offsets, thread float4* entries) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    offsets[i] = codeOffsets(tables, guess, bits, withinGuess(guess, bits, u[i], factor));
    entries[i] = entriesAt(tables, offsets[i]);
  }
}

// Whether the search over divisors takes the codes of a candidate from those of the candidate before. That needs fewer
// instructions, but candidates then depend on one another, which only many vectors hide, and more registers. It also
// needs codebooks in which no value crosses two boundaries from one candidate to the next: those of up to 5 bits.
template <ushort Chunks>
inline bool searchesCells(uint bits) {
  return kvHasSearch && kvIsTurbo && Chunks == 4 && (1u << bits) <= kMaxCells;
}

// Searches divisors g around 1 for the one whose codebook entries c for u / g are closest in direction to u. The result
// holds 1 / g and its sums <u, c> and <c, c>. Lanes reduce the sums of `Together` candidates at a time, to overlap the
// latency of shuffles.
struct BestDivisor {
  float factor;
  float2 sums;
};

template <ushort Chunks, ushort Together>
inline BestDivisor findBestDivisor(
    threadgroup const float* tables, thread const float4* u, constant const float* guess, uint bits, uint lanes,
    bool hasElements, uint candidates, float spacing) {
  BestDivisor best = {1.0f, float2(0.0f, 1.0f)};
  const bool hasCells = searchesCells<Chunks>(bits);
  uint4 offsets[Chunks];
  float4 entries[Chunks];
  uint4 closest[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (hasCells) {
      const float factor = 1.0f / fma(spacing, -0.5f * float(candidates - 1u), 1.0f);
      offsets[i] = cellOffsets(codeOffsets(tables, guess, bits, withinGuess(guess, bits, u[i], factor)), bits);
      closest[i] = uint4(0u);
    }
  }
  for (uint first = 0; first < candidates; first += Together) {
    float factors[Together];
    float2 sums[Together];
    MNK_UNROLL
    for (ushort t = 0; t < Together; ++t) {
      factors[t] = 1.0f / fma(spacing, float(first + t) - 0.5f * float(candidates - 1u), 1.0f);
      if (hasCells) {
        MNK_UNROLL
        for (ushort i = 0; i < Chunks; ++i) {
          moveToCells(tables, u[i] * factors[t], offsets[i], entries[i], closest[i]);
        }
      } else {
        quantized<Chunks>(tables, u, guess, bits, factors[t], offsets, entries);
      }
      sums[t] = productsOver<Chunks>(u, entries, hasElements);
    }
    MNK_UNROLL
    for (ushort t = 0; t < Together; ++t) {
      sums[t] = sumOverLanes(sums[t], lanes);
      // sums.x^2 / sums.y is proportional to the squared cosine.
      const float2 s = sums[t];
      if (first + t < candidates && s.x * s.x * best.sums.y > best.sums.x * best.sums.x * s.y) {
        best = BestDivisor{factors[t], s};
      }
    }
  }
  return best;
}

// Returns the scale of codebook entries for r = y * inverseRoot. Normalizes y to variance 1. `at` is the index of the
// lane within the vector.
template <ushort Chunks>
inline float encodeTurbo(
    threadgroup const float* tables, thread float4* y, thread uint4* codes, KVCodecPlane plane, uint bits, uint at,
    bool isUnbiased, uint candidates, float candidateSpacing) {
  const bool hasElements = at * 4u * Chunks < plane.headDim;
  const float length = float(plane.headDim);
  const float size = precise::sqrt(sumOfSquares<Chunks>(y, plane.lanes) / length);
  const float inverse = size > 0.0f ? 1.0f / size : 0.0f;
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    y[i] *= inverse;
  }
  constant const float* guess = codeGuess(bits);
  BestDivisor best = {1.0f, float2(0.0f, 1.0f)};
  if (kvHasSearch) {
    constexpr ushort kTogether = Chunks > 2 ? 1 : 6;
    best = findBestDivisor<Chunks, kTogether>(
        tables, y, guess, bits, plane.lanes, hasElements, candidates, candidateSpacing * kTurboReach[bits]);
  }
  float4 entries[Chunks];
  quantized<Chunks>(tables, y, guess, bits, best.factor, codes, entries);
  if (!kvHasSearch) {
    best.sums = sumOverLanes(productsOver<Chunks>(y, entries, hasElements), plane.lanes);
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    codes[i] >>= 2;
  }
  if (!(best.sums.x > 0.0f)) {
    return 0.0f;
  }
  return (isUnbiased ? length / best.sums.x : best.sums.x / best.sums.y) * size * plane.inverseRoot;
}

// Returns this lane's scale for the vector, with `power` put back. Replaces y by the normalized elements that are
// compared with the boundaries.
template <ushort Chunks>
inline float encodeMlx1(
    threadgroup const float* tables, thread float4* y, thread uint4* codes, KVCodecPlane plane, uint bits, int power) {
  const uint blocks = mlx1Blocks(plane.headDim);
  const float length = float(plane.headDim / blocks);
  const float size = precise::sqrt(sumOfSquares<Chunks>(y, plane.lanes / blocks) / length);
  // Transformed elements exceed rotated ones by 1 / inverseRoot, the square root of the head dim.
  float norm = blocks == 2u ? size * plane.inverseRoot : size;
  if (kvIsUnrotated) {
    norm = blocks == 2u ? size : size / plane.inverseRoot;
  }
  const float scale = timesPowerOfTwo(norm, power);
  const float factor = scale > 1e-10f ? plane.scaleFactor / size : 0.0f;
  constant const float* guess = codeGuess(bits);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    y[i] *= factor;
    codes[i] = codeOffsets(tables, guess, bits, withinGuess(guess, bits, y[i], 1.0f)) >> 2;
  }
  return scale;
}

// The same for mlx1Affine4, whose codes are multiples of the vector's largest magnitude.
template <ushort Chunks>
inline float encodeAffine(thread const float4* y, thread uint4* codes, KVCodecPlane plane, int power) {
  const float largest = as_type<float>(largestMagnitude<Chunks>(y, plane.lanes));
  const bool hasDirection = timesPowerOfTwo(largest * plane.inverseRoot, power) > 1e-10f;
  const float4 factor = float4(hasDirection ? 7.5f / largest : 0.0f);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    codes[i] = uint4(clamp(fma(y[i], factor, float4(7.5f)), float4(0.0f), float4(15.0f)) + 0.5f);
  }
  return timesPowerOfTwo(largest / 7.5f, power);
}
