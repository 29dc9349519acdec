// Rotates queries and keys, and stores the keys with their values in a dense cache. The results are bit-identical to
// those of MultiRoPE and KVCacheWrite, and the source queries and keys are not modified. Grid: (unit, group of heads,
// token); the head groups of the keys follow those of the queries, and those of the values come last. A unit is one
// pair or four, as in MultiRoPE; for values, which are not rotated, it is the same number of neighboring elements.
#include "../Common/CacheAddress.h"
#include "../Common/FourElements.h"
#include "../Common/RotaryPairs.h"
#include "RotaryAppendTypes.h"

pipeline_constant(uint, appendQueryType, kRotaryAppendQueryType);
pipeline_constant(uint, appendKeyType, kRotaryAppendKeyType);
pipeline_constant(uint, appendCacheType, kRotaryAppendCacheType);

// The vectors of a group of heads, as element offsets and strides.
struct HeadVectors {
  ulong from;
  ulong fromStride;
  ulong into;
  ulong intoStride;
  uint firstHead;
  uint endHead;
};

inline float4 loadPart(device const uchar* from, uint type, ulong index) {
  return ropeIsVectorized ? loadFour(from, type, true, index) : float4(loadElement(from, type, index));
}
inline void storePart(device uchar* into, uint type, ulong index, float4 x) {
  if (ropeIsVectorized) {
    storeFour(into, type, true, index, x);
  } else {
    storeElement(into, type, index, x.x);
  }
}

// Copies bits unchanged if both types are the same.
inline void copyPart(
    device const uchar* from, uint fromType, device uchar* into, uint intoType, ulong index, ulong to) {
  if (fromType != intoType) {
    storePart(into, intoType, to, loadPart(from, fromType, index));
  } else if (ropeIsVectorized) {
    const uint bytes = fromType == uint(kFloat32) ? 16u : 8u;
    uint words[4] = {};
    loadBytes(from + index * (bytes / 4u), bytes, true, words);
    storeBytes(into + to * (bytes / 4u), bytes, true, words);
  } else if (fromType == uint(kFloat32)) {
    reinterpret_cast<device uint*>(into)[to] = reinterpret_cast<device const uint*>(from)[index];
  } else {
    reinterpret_cast<device ushort*>(into)[to] = reinterpret_cast<device const ushort*>(from)[index];
  }
}

// Rotated elements are rounded to their source type before they are converted, as if MultiRoPE had stored them.
MNK_SHARED void moveUnit(
    device const uchar* from, uint fromType, device uchar* into, uint intoType, HeadVectors heads, RopePlace place,
    RopeAngles angles) {
  for (uint head = heads.firstHead; head < heads.endHead; ++head) {
    const ulong source = heads.from + head * heads.fromStride;
    const ulong target = heads.into + head * heads.intoStride;
    if (place.isRotated) {
      const RopeElements elements = {
          loadPart(from, fromType, source + place.first), loadPart(from, fromType, source + place.second)};
      const RopeElements rotated = rotatedPairs(elements, angles);
      storePart(into, intoType, target + place.first, roundedAs(rotated.first, fromType));
      storePart(into, intoType, target + place.second, roundedAs(rotated.second, fromType));
    } else {
      copyPart(from, fromType, into, intoType, source + place.first, target + place.first);
      copyPart(from, fromType, into, intoType, source + place.second, target + place.second);
    }
  }
}

kernel void rotaryAppend(
    constant RotaryAppendParams& p [[buffer(kRotaryAppendParams)]],
    constant uint2* frequencies [[buffer(kRotaryAppendFrequencies)]],
    device const uchar* queries [[buffer(kRotaryAppendQueries)]],
    device uchar* rotatedQueries [[buffer(kRotaryAppendRotatedQueries)]],
    device const uchar* keys [[buffer(kRotaryAppendKeys)]], device const uchar* values [[buffer(kRotaryAppendValues)]],
    device uchar* keyCache [[buffer(kRotaryAppendKeyCache)]],
    device uchar* valueCache [[buffer(kRotaryAppendValueCache)]],
    device const uint* sequences [[buffer(kRotaryAppendSequences), function_constant(kvHasRows)]],
    device const uint* slots [[buffer(kRotaryAppendSlots), function_constant(kvHasRows)]],
    device const uint* positions [[buffer(kRotaryAppendPositions), function_constant(ropeHasPositions)]],
    device const uint* offsets [[buffer(kRotaryAppendOffsets), function_constant(ropeHasOffsets)]],
    uint3 at [[thread_position_in_grid]]) {
  constant MultiRoPEOperand& queryOperand = p.rotation.queries;
  const bool isQuery = at.y < queryOperand.headGroups;
  const uint keyGroup = at.y - queryOperand.headGroups;
  const bool isValue = !isQuery && keyGroup >= p.rotation.keys.headGroups;
  if (at.x >= (isValue ? p.valueUnits : p.keyUnits)) {
    return;
  }
  const uint group = isQuery ? at.y : (isValue ? keyGroup - p.rotation.keys.headGroups : keyGroup);
  const uint heads = isQuery ? queryOperand.heads : p.rotation.keys.heads;
  const uint firstHead = group * p.rotation.headsPerGroup;
  HeadVectors vectors = {0, 0, 0, 0, firstHead, min(firstHead + p.rotation.headsPerGroup, heads)};
  const CacheAddress address = cacheAddress(p.address, sequences, slots, 0u, at.z);

  if (isValue) {
    if (address.isStored) {
      const uint elements = ropeIsVectorized ? 4u : 1u;
      const uint first = 2u * elements * at.x;
      // If the number of elements is odd, the last unit copies its only element twice.
      const RopePlace place = {first, min(first + elements, p.valueDim - elements), false};
      vectors.from = sourceUnit(p.address, p.address.values, 0u, address.sourceToken);
      vectors.fromStride = p.address.values.headStride;
      vectors.into = address.cacheRow * p.valueDim;
      vectors.intoStride = ulong(p.address.cacheHeadStride) * p.valueDim;
      moveUnit(
          values, appendKeyType, valueCache, appendCacheType, vectors, place, RopeAngles{float4(0.0f), float4(0.0f)});
    }
    return;
  }

  const RopeToken token = ropeToken(p.rotation, address.sourceToken);
  const RopePlace place = ropePlace(p.rotation, at.x);
  RopeAngles angles = {float4(0.0f), float4(0.0f)};
  if (place.isRotated) {
    angles = ropeAngles(p.rotation, frequencies, positions, offsets, token, at.x);
  }
  if (isQuery) {
    vectors.from = token.sequence * queryOperand.fromSequenceStride + token.token * queryOperand.fromTokenStride;
    vectors.fromStride = queryOperand.fromHeadStride;
    vectors.into = token.sequence * queryOperand.intoSequenceStride + token.token * queryOperand.intoTokenStride;
    vectors.intoStride = queryOperand.intoHeadStride;
    moveUnit(queries, appendQueryType, rotatedQueries, appendQueryType, vectors, place, angles);
  } else if (address.isStored) {
    vectors.from = sourceUnit(p.address, p.address.keys, 0u, address.sourceToken);
    vectors.fromStride = p.address.keys.headStride;
    vectors.into = address.cacheRow * p.keyDim;
    vectors.intoStride = ulong(p.address.cacheHeadStride) * p.keyDim;
    moveUnit(keys, appendKeyType, keyCache, appendCacheType, vectors, place, angles);
  }
}
export_kernel(rotaryAppend)
