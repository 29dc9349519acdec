// Dequantizes vectors of a cache. Lanes and simdgroups share vectors as in KVCacheQuantize. If only values are read,
// the host binds them as keys.
#include "../Common/CacheAddress.h"
#include "../Common/CodePlanes.h"
#include "../Common/Elements.h"
#include "../Common/KVCodec.h"
#include "KVCacheDequantizeTypes.h"

// Applies what follows the inverse rotation: signs, channel scales and means.
template <ushort Chunks>
inline void restoreElements(
    thread float4* x, CodecVector vector, device const float* keyMeans, device const float* valueMeans,
    device const float* channelScales) {
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = flipped(x[i], codecSigns(vector.plane.headDim, vector.first + 4u * i));
    if (kvHasChannelScales && !vector.isValue) {
      x[i] /= fourFloats(channelScales, vector.element + 4u * i);
    }
    if (kvHasKeyMeans && !vector.isValue) {
      x[i] += fourFloats(keyMeans, vector.element + 4u * i);
    }
    if (kvHasValueMeans && vector.isValue) {
      x[i] += fourFloats(valueMeans, vector.element + 4u * i);
    }
  }
}

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
  const CodecVector vector = codecVector(p.keys, p.values, Chunks, group.x * simdgroups + simdgroup, lane);
  device uchar* into = keys;
  device const uchar* codes = keyCodes;
  device const uchar* scales = nullptr;
  if (kvHasQuantizedKeys) {
    scales = keyScales;
  }
  if (kvHasValues && vector.isValue) {
    into = values;
    codes = valueCodes;
    if (kvHasQuantizedValues) {
      scales = valueScales;
    }
  }
  const bool isRead = vector.head < p.heads && vector.first < vector.plane.headDim;
  const CacheAddress address = addressInRun(p.address, min(vector.head, p.heads - 1u), group.y);
  const KVCodecPlane plane = vector.plane;

  // Bits are a compile-time constant in both calls, so that loops unroll. The codebook is filled while the loads of
  // codes are in flight.
  const bool usesValueTable = vector.isValue && hasValueTable();
  uint words[4 * Chunks] = {};
  uint scale = 0;
  if (vector.isCoded) {
    codes += address.cacheRow * plane.codeBytes;
    if (usesValueTable) {
      loadCodes<4 * Chunks, MayBePadded>(codes, kvValueBits, plane.headDim, vector.first, kvHasAlignedCodes, words);
    } else {
      loadCodes<4 * Chunks, MayBePadded>(codes, kvKeyBits, plane.headDim, vector.first, kvHasAlignedCodes, words);
    }
    scale = storedScale(scales, address.cacheRow, plane.headDim, vector.first);
  } else if (isRead) {
    loadChunks<Chunks>(codes, kvDenseType, kvHasAlignedCodes, address.cacheRow * plane.headDim + vector.first, words);
  }
  const uint place = simdgroup * 32u + lane;
  fillCodebook(levels, kvKeyBits, place, simdgroups * 32u);
  if (hasValueTable()) {
    fillCodebook(levels + 256, kvValueBits, place, simdgroups * 32u);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);  // codebooks are filled

  float4 x[Chunks];
  const float factor = codebookScale(scale, plane.headDim, plane.inverseRoot, plane.scaleFactor);
  MNK_UNROLL
  for (ushort i = 0; i < Chunks; ++i) {
    if (!vector.isCoded) {
      x[i] = floatsOfWords(words, kvDenseType, i);
    } else {
      x[i] = factor * (usesValueTable ? dequantizeFour<4 * Chunks>(words, i, kvValueBits, levels + 256)
                                      : dequantizeFour<4 * Chunks>(words, i, kvKeyBits, levels));
    }
  }
  const bool isRestored = vector.isCoded && p.isOriginal != 0u && !kvIsUnrotated;
  if (isRestored) {
    hadamardRotate<Chunks>(x, plane.headDim, plane.lanes, lane, plane.inverseRoot);
  }
  if (isRead && isRestored) {
    restoreElements<Chunks>(x, vector, keyMeans, valueMeans, channelScales);
  }
  if (isRead) {
    const ulong keyUnit = sourceUnit(p.address, p.address.keys, vector.head, address.sourceToken);
    const ulong valueUnit = sourceUnit(p.address, p.address.values, vector.head, address.sourceToken);
    const ulong element = (vector.isValue ? valueUnit : keyUnit) + vector.first;
    storeChunks<Chunks>(into, kvElementType, kvIsVectorizedElements, element, x);
  }
}

#define ROW(chunks) instantiate_kernel("kvCacheDequantize_" #chunks, kvCacheDequantize, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
