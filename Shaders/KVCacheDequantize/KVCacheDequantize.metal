// Dequantizes vectors of a cache. Lanes and simdgroups share vectors as in KVCacheQuantize. If only values are read,
// the host binds them as keys.
#include "../Common/CacheAddress.h"
#include "../Common/CodePlanes.h"
#include "../Common/FourElements.h"
#include "../Common/KVCodec.h"
#include "KVCacheDequantizeTypes.h"

template <ushort Chunks>
kernel void kvCacheDequantize(
    constant KVCacheDequantizeParams& p [[buffer(kKVCacheDequantizeParams)]],
    device uchar* keys [[buffer(kKVCacheDequantizeKeys)]],
    device uchar* values [[buffer(kKVCacheDequantizeValues), function_constant(kvHasValues)]],
    device const uchar* keyCodes [[buffer(kKVCacheDequantizeKeyCodes)]],
    device const uchar* valueCodes [[buffer(kKVCacheDequantizeValueCodes), function_constant(kvHasValues)]],
    device const uchar* keyScales [[buffer(kKVCacheDequantizeKeyScales), function_constant(kvHasQuantizedKeys)]],
    device const uchar* valueScales [[buffer(kKVCacheDequantizeValueScales), function_constant(kvHasQuantizedValues)]],
    device const float* keyMeans [[buffer(kKVCacheDequantizeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kKVCacheDequantizeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales
    [[buffer(kKVCacheDequantizeChannelScales), function_constant(kvHasChannelScales)]],
    uint2 group [[threadgroup_position_in_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  constexpr bool MayBePadded = Chunks <= 4;  // padded vectors have at most 192 elements
  threadgroup_array(float, levels, 2 * 256);
  uint index = group.x * simdgroups + simdgroup;
  bool isValue = false;
  device uchar* into = keys;
  device const uchar* codes = keyCodes;
  device const uchar* scales = nullptr;
  if (kvHasQuantizedKeys) {
    scales = keyScales;
  }
  if (kvHasValues) {
    if (index >= p.keys.simdgroups) {
      index -= p.keys.simdgroups;
      isValue = true;
      into = values;
      codes = valueCodes;
      if (kvHasQuantizedValues) {
        scales = valueScales;
      }
    }
  }
  const bool isCoded = isValue ? kvHasQuantizedValues : kvHasQuantizedKeys;  // uniform over a simdgroup

  const KVCodecPlane plane = planeOf(p.keys, p.values, isValue, Chunks);
  const uint first = lane % plane.lanes * 4u * Chunks;
  const uint head = index * (32u / plane.lanes) + lane / plane.lanes;
  const bool isRead = head < p.heads && first < plane.headDim;
  const CacheAddress address = addressInRun(p.address, min(head, p.heads - 1u), group.y);
  const ulong elementOfHead = ulong(head) * plane.headDim + first;

  // Bits are a compile-time constant in both calls, so that loops unroll. The codebook is filled while the loads of
  // codes are in flight.
  const bool isOwnTable = kvHasValues && kvValueBits != kvKeyBits;
  const uint place = simdgroup * 32u + lane;
  uint words[4 * Chunks] = {};
  uint scale = 0;
  if (isCoded) {
    codes += address.cacheRow * plane.codeBytes;
    if (isValue && isOwnTable) {
      loadCodes<4 * Chunks, MayBePadded>(codes, kvValueBits, plane.headDim, first, kvHasAlignedCodes, words);
    } else {
      loadCodes<4 * Chunks, MayBePadded>(codes, kvKeyBits, plane.headDim, first, kvHasAlignedCodes, words);
    }
    scale = storedScale(scales, address.cacheRow, plane.headDim, first);
  } else if (isRead) {
    loadChunks<Chunks>(codes, kvDenseType, kvHasAlignedCodes, address.cacheRow * plane.headDim + first, words);
  }
  fillCodebook(levels, kvKeyBits, place, simdgroups * 32u);
  if (isOwnTable) {
    fillCodebook(levels + 256, kvValueBits, place, simdgroups * 32u);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // codebooks are filled

  float4 x[Chunks];
  const float factor = codebookScale(scale, plane.headDim, plane.inverseRoot, plane.scaleFactor);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (!isCoded) {
      x[i] = floatsOfWords(words, kvDenseType, i);
    } else {
      x[i] = factor * (isValue && isOwnTable ? dequantizeFour<4 * Chunks>(words, i, kvValueBits, levels + 256)
                                             : dequantizeFour<4 * Chunks>(words, i, kvKeyBits, levels));
    }
  }
  if (isCoded && p.isOriginal != 0u && !kvIsUnrotated) {
    turned<Chunks>(x, plane.headDim, plane.lanes, lane, plane.inverseRoot);
    MNK_UNROLL
    for (ushort i = 0; i < Chunks; ++i) {
      if (isRead) {
        x[i] = flipped(x[i], codecSigns(plane.headDim, first + 4u * i));
        if (kvHasChannelScales && !isValue) {
          x[i] /= fourFloats(channelScales, elementOfHead + 4u * i);
        }
        if (kvHasKeyMeans && !isValue) {
          x[i] += fourFloats(keyMeans, elementOfHead + 4u * i);
        }
        if (kvHasValueMeans && isValue) {
          x[i] += fourFloats(valueMeans, elementOfHead + 4u * i);
        }
      }
    }
  }
  if (isRead) {
    const ulong keyUnit = sourceUnit(p.address, p.address.keys, head, address.sourceToken);
    const ulong valueUnit = sourceUnit(p.address, p.address.values, head, address.sourceToken);
    const ulong element = (isValue ? valueUnit : keyUnit) + first;
    storeChunks<Chunks>(into, kvElementType, kvIsVectorizedElements, element, x);
  }
}

#define ROW(chunks) instantiate_kernel("kvCacheDequantize_" #chunks, kvCacheDequantize, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
