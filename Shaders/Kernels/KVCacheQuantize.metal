// Codes new tokens into a quantized cache. Grid of threadgroups: (group of simdgroups, token). Lanes of a simdgroup
// share a vector, or several short ones; simdgroups past those of the keys take the values, so that one dispatch stores
// both. Every lane goes all the way, because lanes exchange elements; those without a vector carry zeros and store
// nothing.
#include "../Lib/CacheAddress.h"
#include "../Lib/CodePlanes.h"
#include "../Lib/FourElements.h"
#include "../Lib/KVEncode.h"
#include "../Types/KVCacheQuantizeTypes.h"

pipeline_constant(bool, kvHasCounts, kKVCacheQuantizeHasCounts);
pipeline_constant(bool, kvHasProbe, kKVCacheQuantizeHasProbe);

// The largest f16 stands for what is beyond it.
inline half turboScale(float scale, bool isNan) {
  const uint bits = min(as_type<uint>(scale), 0x477fe000u);
  return isNan ? as_type<half>(ushort(0x7e00)) : half(as_type<float>(bits));
}

template <ushort Chunks>
kernel void kvCacheQuantize(
    constant KVCacheQuantizeParams& p [[buffer(kKVCacheQuantizeParams)]],
    device const uchar* keys [[buffer(kKVCacheQuantizeKeys)]],
    device const uchar* values [[buffer(kKVCacheQuantizeValues), function_constant(kvHasValues)]],
    device uchar* keyCodes [[buffer(kKVCacheQuantizeKeyCodes)]],
    device uchar* valueCodes [[buffer(kKVCacheQuantizeValueCodes), function_constant(kvHasValues)]],
    device uchar* keyScales [[buffer(kKVCacheQuantizeKeyScales)]],
    device uchar* valueScales [[buffer(kKVCacheQuantizeValueScales), function_constant(kvHasValues)]],
    device const uint* sequences [[buffer(kKVCacheQuantizeSequences), function_constant(kvHasRows)]],
    device const uint* positions [[buffer(kKVCacheQuantizePositions), function_constant(kvHasRows)]],
    device const float* keyMeans [[buffer(kKVCacheQuantizeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kKVCacheQuantizeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales [[buffer(kKVCacheQuantizeChannelScales), function_constant(kvHasChannelScales)]],
    device atomic_uint* counts [[buffer(kKVCacheQuantizeCounts), function_constant(kvHasCounts)]],
    device float* probe [[buffer(kKVCacheQuantizeProbe), function_constant(kvHasProbe)]],
    uint2 group [[threadgroup_position_in_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  uint index = group.x * simdgroups + simdgroup;
  bool isValue = false;
  constant KVCodecPlane* plane = &p.keys;
  constant CacheSource* from = &p.address.keys;
  device const uchar* source = keys;
  device uchar* codesInto = keyCodes;
  device uchar* scalesInto = keyScales;
  uint bits = kvKeyBits;
  if (kvHasValues) {
    if (index >= p.keys.simdgroups) {
      index -= p.keys.simdgroups;
      isValue = true;
      plane = &p.values;
      from = &p.address.values;
      source = values;
      codesInto = valueCodes;
      scalesInto = valueScales;
      bits = kvValueBits;
    }
  }

  const uint at = lane % plane->lanes;
  const uint first = at * 4u * Chunks;
  const uint head = index * (32u / plane->lanes) + lane / plane->lanes;
  const uint held = min(head, p.heads - 1u);
  const CacheAddress address = cacheAddress(p.address, sequences, positions, held, group.y);
  const bool isStored = head < p.heads && address.isStored;
  const ulong element = sourceUnit(p.address, *from, held, address.sourceToken) + first;
  const ulong elementOfHead = ulong(head) * plane->headDim + first;

  float4 x[Chunks];
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = float4(0.0f);
    if (isStored) {
      x[i] = withoutSubnormal(loadFour(source, kvElementType, kvIsVectorizedElements, element + 4u * i));
      if (kvHasKeyMeans && !isValue) {
        x[i] = withoutSubnormal(x[i] - withoutSubnormal(fourFloats(keyMeans, elementOfHead + 4u * i)));
      }
      if (kvHasValueMeans && isValue) {
        x[i] = withoutSubnormal(x[i] - withoutSubnormal(fourFloats(valueMeans, elementOfHead + 4u * i)));
      }
      if (kvHasChannelScales && !isValue) {
        x[i] *= withoutSubnormal(fourFloats(channelScales, elementOfHead + 4u * i));
      }
    }
  }

  const VectorSize size = takeOutSize<Chunks>(x, plane->lanes);
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = flipped(x[i], codecSigns(plane->headDim, first + 4u * i));
  }
  walshHadamard<Chunks>(x, plane->lanes, lane);

  const bool isNan = !size.isFinite && (p.flags & uint(kKVPropagatesNonFinite)) != 0u;
  uint4 codes[Chunks];
  bool isSaturated = false;
  if (kvIsTurbo) {
    const uint unbiased = isValue ? uint(kKVUnbiasedValues) : uint(kKVUnbiasedKeys);
    const float scale = timesPowerOfTwo(
        encodeTurbo<Chunks>(x, codes, *plane, bits, (p.flags & unbiased) != 0u, p.candidates, p.candidateSpacing),
        size.power);
    isSaturated = as_type<uint>(scale) > 0x477fe000u;
    if (isStored && at == 0u) {
      reinterpret_cast<device half*>(scalesInto)[address.cacheRow] = turboScale(scale, isNan);
    }
  } else {
    const float scale = encodeMlx1<Chunks>(x, codes, *plane, bits, size.power);
    if (kvHasCounts) {
      isSaturated = largestOverLanes(as_type<uint>(scale), plane->lanes) == 0x7f7fffffu;
    }
    const uint blocks = mlx1Blocks(plane->headDim);
    const uint lanesOfBlock = plane->lanes / blocks;
    if (isStored && at % lanesOfBlock == 0u) {
      reinterpret_cast<device float*>(scalesInto)[address.cacheRow * blocks + at / lanesOfBlock] =
          isNan ? as_type<float>(0x7fc00000u) : scale;
    }
  }
  storeCodes<Chunks>(codes, bits, codesInto + address.cacheRow * plane->codeBytes, *plane, at, isStored);

  if (kvHasProbe && isStored && !isValue) {
    for (ushort i = 0; i < Chunks; ++i) {
      probe[elementOfHead + 4u * i] = x[i].x;
      probe[elementOfHead + 4u * i + 1u] = x[i].y;
      probe[elementOfHead + 4u * i + 2u] = x[i].z;
      probe[elementOfHead + 4u * i + 3u] = x[i].w;
    }
  }
  if (kvHasCounts && isStored && at == 0u) {
    if (!size.isFinite) {
      atomic_fetch_add_explicit(&counts[0], 1u, memory_order_relaxed);
    }
    if (isSaturated) {
      atomic_fetch_add_explicit(&counts[1], 1u, memory_order_relaxed);
    }
  }
}

#define ROW(chunks) instantiate_kernel("kvCacheQuantize_" #chunks, kvCacheQuantize, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
