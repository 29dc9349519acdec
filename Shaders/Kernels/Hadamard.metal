// Turns vectors by the Walsh-Hadamard transform, with or without the signs of a codec. Lanes of a simdgroup share a
// vector, or several short ones; every lane goes all the way, because lanes exchange elements. Results that take the
// place of their vectors are read where they are written, because buffers of two arguments may not alias.
#include "../Lib/FourElements.h"
#include "../Lib/KVCodec.h"
#include "../Types/HadamardTypes.h"

pipeline_constant(uint, hadamardFromType, kHadamardFromType);
pipeline_constant(uint, hadamardIntoType, kHadamardIntoType);
pipeline_constant(bool, hadamardIsApart, kHadamardIsApart);
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

template <ushort Chunks>
kernel void hadamard(
    constant HadamardParams& p [[buffer(kHadamardParams)]],
    device const uchar* from [[buffer(kHadamardFrom), function_constant(hadamardIsApart)]],
    device uchar* into [[buffer(kHadamardInto)]], uint2 group [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  device const uchar* source = into;
  if (hadamardIsApart) {
    source = from;
  }
  const uint first = lane % p.lanes * 4u * Chunks;
  const uint vector = (group.x * simdgroups + simdgroup) * (32u / p.lanes) + lane / p.lanes;
  const ulong element = ulong(vector) * p.length + first;

  float4 x[Chunks];
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = float4(0.0f);
    if (vector < p.vectors) {
      x[i] = loadFour(source, hadamardFromType, hadamardIsVectorized, element + 4u * i);
      if (p.isInverse == 0u) {
        x[i] = hadamardSigned(x[i], p, first + 4u * i);
      }
    }
  }
  turned<Chunks>(x, p.lanes, lane, p.inverseRoot);
  if (vector < p.vectors) {
    for (ushort i = 0; i < Chunks; ++i) {
      if (p.isInverse != 0u) {
        x[i] = hadamardSigned(x[i], p, first + 4u * i);
      }
      storeFour(into, hadamardIntoType, hadamardIsVectorized, element + 4u * i, x[i]);
    }
  }
}

#define ROW(chunks) instantiate_kernel("hadamard_" #chunks, hadamard, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
