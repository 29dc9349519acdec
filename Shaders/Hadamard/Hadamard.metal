// Rotates vectors with the Walsh-Hadamard transform, with or without the signs of a codec. The lanes of a simdgroup
// share a vector, or several short ones, and simdgroups share a long one. No lane exits early, because lanes exchange
// elements. In place, the kernel reads through the output argument, because two buffer arguments must not alias.
#include "../Common/FourElements.h"
#include "../Common/KVCodec.h"
#include "HadamardTypes.h"

pipeline_constant(uint, hadamardFromType, kHadamardFromType);
pipeline_constant(uint, hadamardIntoType, kHadamardIntoType);
pipeline_constant(bool, hadamardIsOutOfPlace, kHadamardIsOutOfPlace);
pipeline_constant(bool, hadamardIsVectorized, kHadamardIsVectorized);

inline float4 hadamardSigned(float4 x, constant HadamardParams& p, uint first) {
  if (p.signs == uint(kHadamardTurboSigns)) {
    return flipped(x, turboSigns(p.length, first));
  }
  if (p.signs == uint(kHadamardMlx1Signs)) {
    return flipped(x, mlx1Signs(p.length, first));
  }
  return x;
}

// `Parts` simdgroups share a vector. Each transforms its own part; the last stages of the transform exchange parts
// through threadgroup memory.
template <ushort Chunks, ushort Parts>
kernel void hadamard(
    constant HadamardParams& p [[buffer(kHadamardParams)]],
    device const uchar* from [[buffer(kHadamardFrom), function_constant(hadamardIsOutOfPlace)]],
    device uchar* into [[buffer(kHadamardInto)]], uint2 group [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float4, parts, Parts == 1 ? 1 : 32 * Chunks * Parts);
  device const uchar* source = into;
  if (hadamardIsOutOfPlace) {
    source = from;
  }
  const uint index = group.x * simdgroups + simdgroup;
  const uint part = index % Parts;
  const uint first = (part * p.lanes + lane % p.lanes) * 4u * Chunks;
  const uint vector = 32u / p.lanes * (index / Parts) + lane / p.lanes;
  const ulong element = ulong(vector) * p.length + first;

  uint words[4 * Chunks] = {};
  const bool hasElements = vector < p.vectors && first < p.length;
  if (hasElements) {
    loadChunks<Chunks>(source, hadamardFromType, hadamardIsVectorized, element, words);
  }
  float4 x[Chunks];
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = floatsOfWords(words, hadamardFromType, i);
    if (p.isInverse == 0u && hasElements) {
      x[i] = hadamardSigned(x[i], p, first + 4u * i);
    }
  }
  turned<Chunks>(x, p.length / Parts, p.lanes, lane, powerOfTwoIn(p.inverseRoot));
  if (Parts > 1) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      parts[(part * Chunks + i) * 32u + lane] = x[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      float4 sums[Parts];
      MNK_UNROLL
      for (ushort q = 0; q < Parts; ++q) {
        sums[q] = parts[(q * Chunks + i) * 32u + lane];
      }
      MNK_UNROLL
      for (ushort h = 1; h < Parts; h = ushort(h * 2)) {
        MNK_UNROLL
        for (ushort q = 0; q < Parts; q = ushort(q + 2 * h)) {
          sums[q] += sums[q + h] * ((part & h) != 0u ? -1.0f : 1.0f);
        }
      }
      x[i] = sums[0];
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] *= withoutPowerOfTwo(p.inverseRoot);
    if (p.isInverse != 0u && hasElements) {
      x[i] = hadamardSigned(x[i], p, first + 4u * i);
    }
  }
  if (hasElements) {
    storeChunks<Chunks>(into, hadamardIntoType, hadamardIsVectorized, element, x);
  }
}

#define ROW(chunks, parts) instantiate_kernel("hadamard_" #chunks "_" #parts, hadamard, chunks, parts)
MNK_HADAMARD_INSTANCES(ROW)
#undef ROW
