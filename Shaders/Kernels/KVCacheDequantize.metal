// Reads vectors of a quantized cache back as numbers. Lanes and simdgroups share vectors as in KVCacheQuantize. Where
// values are read alone they stand in the place of the keys.
#include "../Lib/CacheAddress.h"
#include "../Lib/CodePlanes.h"
#include "../Lib/FourElements.h"
#include "../Lib/KVCodec.h"
#include "../Types/KVCacheDequantizeTypes.h"

template <ushort Chunks>
kernel void kvCacheDequantize(
    constant KVCacheDequantizeParams& p [[buffer(kKVCacheDequantizeParams)]],
    device uchar* keys [[buffer(kKVCacheDequantizeKeys)]],
    device uchar* values [[buffer(kKVCacheDequantizeValues), function_constant(kvHasValues)]],
    device const uchar* keyCodes [[buffer(kKVCacheDequantizeKeyCodes)]],
    device const uchar* valueCodes [[buffer(kKVCacheDequantizeValueCodes), function_constant(kvHasValues)]],
    device const uchar* keyScales [[buffer(kKVCacheDequantizeKeyScales)]],
    device const uchar* valueScales [[buffer(kKVCacheDequantizeValueScales), function_constant(kvHasValues)]],
    device const float* keyMeans [[buffer(kKVCacheDequantizeKeyMeans), function_constant(kvHasKeyMeans)]],
    device const float* valueMeans [[buffer(kKVCacheDequantizeValueMeans), function_constant(kvHasValueMeans)]],
    device const float* channelScales
    [[buffer(kKVCacheDequantizeChannelScales), function_constant(kvHasChannelScales)]],
    uint2 group [[threadgroup_position_in_grid]], uint simdgroups [[simdgroups_per_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  uint index = group.x * simdgroups + simdgroup;
  bool isValue = false;
  constant KVCodecPlane* plane = &p.keys;
  constant CacheSource* target = &p.address.keys;
  device uchar* into = keys;
  device const uchar* codes = keyCodes;
  device const uchar* scales = keyScales;
  uint bits = kvKeyBits;
  if (kvHasValues) {
    if (index >= p.keys.simdgroups) {
      index -= p.keys.simdgroups;
      isValue = true;
      plane = &p.values;
      target = &p.address.values;
      into = values;
      codes = valueCodes;
      scales = valueScales;
      bits = kvValueBits;
    }
  }

  const uint at = lane % plane->lanes;
  const uint first = at * 4u * Chunks;
  const uint head = index * (32u / plane->lanes) + lane / plane->lanes;
  const bool isRead = head < p.heads;
  const CacheAddress address = addressInRun(p.address, min(head, p.heads - 1u), group.y);
  const ulong elementOfHead = ulong(head) * plane->headDim + first;

  float4 x[Chunks];
  const CodeBook book = codeBook(bits);
  for (ushort i = 0; i < Chunks; ++i) {
    x[i] = float4(0.0f);
    if (isRead) {
      device const uchar* row = codes + address.cacheRow * plane->codeBytes;
      const uint scale = storedScale(scales, address.cacheRow, plane->headDim, first);
      x[i] = levelsOf(book, loadCodes(row, bits, plane->headDim, first + 4u * i)) *
             scaleOfLevels(scale, plane->headDim, plane->inverseRoot, plane->scaleFactor);
    }
  }
  if (p.isOriginal != 0u) {
    turned<Chunks>(x, plane->lanes, lane, plane->inverseRoot);
    for (ushort i = 0; i < Chunks; ++i) {
      x[i] = flipped(x[i], codecSigns(plane->headDim, first + 4u * i));
      if (isRead) {
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
    const ulong element = sourceUnit(p.address, *target, head, address.sourceToken) + first;
    for (ushort i = 0; i < Chunks; ++i) {
      storeFour(into, kvElementType, kvIsVectorizedElements, element + 4u * i, x[i]);
    }
  }
}

#define ROW(chunks) instantiate_kernel("kvCacheDequantize_" #chunks, kvCacheDequantize, chunks)
MNK_VECTOR_CHUNKS(ROW)
#undef ROW
