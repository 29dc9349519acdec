// Rotates queries and keys, and stores the keys with their values in a dense cache. The results are bit-identical to
// those of MultiRoPE and KVCacheWrite, and the source queries and keys are not modified. Grid: (unit, group of heads,
// token); the head groups of the keys follow those of the queries, and those of the values come last. A unit is one
// pair or four, as in MultiRoPE; for values, which are not rotated, it is the same number of neighboring elements.
#include "../Common/CacheAddress.h"
#include "../Common/Elements.h"
#include "../Common/Rotary.h"
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

// Loads both parts before it stores one, because for all a compiler knows, the store changes what is loaded.
template <typename T>
inline void copyTwo(device const T* from, device T* into, RopePlace place, uint elements) {
  const T first = from[place.first / elements];
  const T second = from[place.second / elements];
  into[place.first / elements] = first;
  into[place.second / elements] = second;
}
template <typename T>
inline void copyBits(device const uchar* from, device uchar* into, RopePlace place, ulong source, ulong target) {
  if (ropeIsVectorized) {
    copyTwo(
        reinterpret_cast<device const vec<T, 4>*>(from) + source / 4u,
        reinterpret_cast<device vec<T, 4>*>(into) + target / 4u, place, 4u);
  } else {
    copyTwo(reinterpret_cast<device const T*>(from) + source, reinterpret_cast<device T*>(into) + target, place, 1u);
  }
}

// Copies bits unchanged if both types are the same.
inline void copyUnit(
    device const uchar* from, uint fromType, device uchar* into, uint intoType, RopePlace place, ulong source,
    ulong target) {
  if (fromType != intoType) {
    const float4 first = loadPart(from, fromType, source + place.first);
    const float4 second = loadPart(from, fromType, source + place.second);
    storePart(into, intoType, target + place.first, first);
    storePart(into, intoType, target + place.second, second);
  } else if (fromType == uint(kFloat32)) {
    copyBits<uint>(from, into, place, source, target);
  } else {
    copyBits<ushort>(from, into, place, source, target);
  }
}

// The elements of a unit in one vector. Nothing is loaded if the unit is copied.
inline RopeElements loadUnit(device const uchar* from, uint type, HeadVectors heads, uint head, RopePlace place) {
  RopeElements elements = {float4(0.0f), float4(0.0f)};
  if (place.isRotated) {
    const ulong source = heads.from + head * heads.fromStride;
    elements.first = loadPart(from, type, source + place.first);
    elements.second = loadPart(from, type, source + place.second);
  }
  return elements;
}

// Rotated elements are rounded to their source type before they are converted, as if MultiRoPE had stored them.
// `elements` are those of the first head.
MNK_SHARED void moveUnit(
    device const uchar* from, uint fromType, device uchar* into, uint intoType, HeadVectors heads, RopePlace place,
    RopeAngles angles, RopeElements elements) {
  for (uint head = heads.firstHead; head < heads.endHead; ++head) {
    const ulong source = heads.from + head * heads.fromStride;
    const ulong target = heads.into + head * heads.intoStride;
    if (place.isRotated) {
      const RopeElements rotated = rotatedPairs(elements, angles);
      if (head + 1u < heads.endHead) {
        elements = loadUnit(from, fromType, heads, head + 1u, place);
      }
      storePart(into, intoType, target + place.first, roundedAs(rotated.first, fromType));
      storePart(into, intoType, target + place.second, roundedAs(rotated.second, fromType));
    } else {
      copyUnit(from, fromType, into, intoType, place, source, target);
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
          values, appendKeyType, valueCache, appendCacheType, vectors, place, RopeAngles{float4(0.0f), float4(0.0f)},
          RopeElements{float4(0.0f), float4(0.0f)});
    }
    return;
  }

  const RopeToken token = ropeToken(p.rotation, address.sourceToken);
  const RopePlace place = ropePlace(p.rotation, at.x);
  // The first head is loaded while the angles are computed.
  RopeElements elements = {float4(0.0f), float4(0.0f)};
  if (isQuery) {
    vectors.from = token.sequence * queryOperand.fromSequenceStride + token.token * queryOperand.fromTokenStride;
    vectors.fromStride = queryOperand.fromHeadStride;
    vectors.into = token.sequence * queryOperand.intoSequenceStride + token.token * queryOperand.intoTokenStride;
    vectors.intoStride = queryOperand.intoHeadStride;
    elements = loadUnit(queries, appendQueryType, vectors, firstHead, place);
  } else if (address.isStored) {
    vectors.from = sourceUnit(p.address, p.address.keys, 0u, address.sourceToken);
    vectors.fromStride = p.address.keys.headStride;
    vectors.into = address.cacheRow * p.keyDim;
    vectors.intoStride = ulong(p.address.cacheHeadStride) * p.keyDim;
    elements = loadUnit(keys, appendKeyType, vectors, firstHead, place);
  }
  RopeAngles angles = {float4(0.0f), float4(0.0f)};
  if (place.isRotated) {
    angles = ropeAngles(p.rotation, frequencies, positions, offsets, token, at.x);
  }
  if (isQuery) {
    moveUnit(queries, appendQueryType, rotatedQueries, appendQueryType, vectors, place, angles, elements);
  } else if (address.isStored) {
    moveUnit(keys, appendKeyType, keyCache, appendCacheType, vectors, place, angles, elements);
  }
}
export_kernel(rotaryAppend)
