// Rotates vectors with the Walsh-Hadamard transform, with or without the signs of a codec. In place, the kernels read
// through the output argument, because two buffer arguments must not alias.
#include "../Common/Elements.h"
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

// The lanes of a simdgroup share a vector, or several short ones. No lane exits early, because lanes exchange elements.
template <ushort Chunks>
kernel void hadamard(
    constant HadamardParams& p [[buffer(kHadamardParams)]],
    device const uchar* from [[buffer(kHadamardFrom), function_constant(hadamardIsOutOfPlace)]],
    device uchar* into [[buffer(kHadamardInto)]], uint2 group [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  device const uchar* source = into;
  if (hadamardIsOutOfPlace) {
    source = from;
  }
  const uint first = lane % p.lanes * 4u * Chunks;
  const uint vector = 32u / p.lanes * (group.x * simdgroups + simdgroup) + lane / p.lanes;
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
  hadamardRotate<Chunks>(x, p.length, p.lanes, lane, p.inverseRoot);
  if (p.isInverse != 0u && hasElements) {
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      x[i] = hadamardSigned(x[i], p, first + 4u * i);
    }
  }
  if (hasElements) {
    storeChunks<Chunks>(into, hadamardIntoType, hadamardIsVectorized, element, x);
  }
}

#define ROW(chunks) instantiate_kernel("hadamard_" #chunks, hadamard, chunks)
MNK_HADAMARD_CHUNKS(ROW)
#undef ROW

// A threadgroup transforms a long vector of `Parts` times 1024 elements, for which no codec has signs. A thread holds
// 32 of them and transforms along five of their index bits at a time: first those of neighbors, next, after a simdgroup
// has transposed its part in threadgroup memory, those of neighbors 32 apart, and last those of the same place in all
// parts. Exchanging elements this way takes fewer instructions and registers than shuffles.
template <ushort Parts>
kernel void hadamardParts(
    constant HadamardParams& p [[buffer(kHadamardParams)]],
    device const uchar* from [[buffer(kHadamardFrom), function_constant(hadamardIsOutOfPlace)]],
    device uchar* into [[buffer(kHadamardInto)]], uint2 group [[threadgroup_position_in_grid]],
    uint part [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  // A float4 in nine is unused, so that neither rows nor columns of the transposition meet in a memory bank.
  constexpr ushort kRow = 9;
  threadgroup_array(float4, elements, 32 * kRow * Parts);
  device const uchar* source = into;
  if (hadamardIsOutOfPlace) {
    source = from;
  }
  const ulong vector = ulong(group.x) * p.length;
  const uint place = part * 32u + lane;

  uint words[32] = {};
  loadChunks<8>(source, hadamardFromType, hadamardIsVectorized, vector + 32u * place, words);
  float4 x[8];
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    x[i] = floatsOfWords(words, hadamardFromType, i) * powerOfTwoIn(p.inverseRoot);
  }
  walshHadamard<8>(x, 32u, 1u, lane);
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    elements[place * kRow + i] = x[i];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);

  threadgroup float* column = reinterpret_cast<threadgroup float*>(elements + part * 32u * kRow) + lane;
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    threadgroup float* four = column + 16 * kRow * i;
    x[i] = float4(four[0], four[4 * kRow], four[8 * kRow], four[12 * kRow]);
  }
  walshHadamard<8>(x, 32u, 1u, lane);
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    threadgroup float* four = column + 16 * kRow * i;
    four[0] = x[i].x;
    four[4 * kRow] = x[i].y;
    four[8 * kRow] = x[i].z;
    four[12 * kRow] = x[i].w;
  }
  // Device memory too: in place, all threads have loaded the vector before one stores a part of it.
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);

  // A few neighboring float4s of each part.
  constexpr ushort kOfPart = 8 / Parts;
  const uint at = place * kOfPart;
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    x[i] = elements[(i / kOfPart * 32u + at / 8u) * kRow + at % 8u + i % kOfPart];
  }
  MNK_UNROLL
  for (ushort h = kOfPart; h < 8; h = ushort(h * 2)) {
    MNK_UNROLL
    for (ushort i = 0; i < 8; ++i) {
      if ((i & h) == 0) {
        const float4 a = x[i];
        const float4 b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
    }
  }
  MNK_UNROLL
  for (ushort i = 0; i < 8; ++i) {
    x[i] *= withoutPowerOfTwo(p.inverseRoot);
  }
  MNK_UNROLL
  for (ushort q = 0; q < Parts; ++q) {
    storeChunks<kOfPart>(into, hadamardIntoType, hadamardIsVectorized, vector + 1024u * q + 4u * at, x + q * kOfPart);
  }
}

#define ROW(parts) instantiate_kernel("hadamardParts_" #parts, hadamardParts, parts)
MNK_HADAMARD_PARTS(ROW)
#undef ROW
