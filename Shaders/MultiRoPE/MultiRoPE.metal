// Rotates pairs of elements by their token's position. Grid: (unit, group of heads, token of any sequence); the head
// groups of the keys follow those of the queries. A thread computes the angles of its unit once for all heads of its
// group. No other thread accesses its elements, so results may be written in place. In place, the kernel reads through
// the output argument, because two buffer arguments must not alias.
#include "../Common/Elements.h"
#include "../Common/Rotary.h"
#include "MultiRoPETypes.h"

pipeline_constant(bool, ropeHasKeys, kMultiRoPEHasKeys);
pipeline_constant(bool, ropeIsOutOfPlace, kMultiRoPEIsOutOfPlace);
pipeline_constant(bool, ropeHasKeysOutOfPlace, kMultiRoPEHasKeysOutOfPlace);

template <typename From, typename Into>
inline void rotatePair(device const From* from, device Into* into, RopePlace place, Rotation rotation) {
  const float x = floatOf(from[place.first]);
  const float y = floatOf(from[place.second]);
  into[place.first] = rounded(rotatedFirst(x, y, rotation.cosine, rotation.sine), Into());
  into[place.second] = rounded(rotatedSecond(x, y, rotation.cosine, rotation.sine), Into());
}

template <typename From, typename Into>
inline void rotateFourPairs(device const From* from, device Into* into, RopePlace place, RopeAngles angles) {
  const RopeElements rotated = rotatedPairs(
      RopeElements{
          floatsOf(*reinterpret_cast<device const vec<From, 4>*>(from + place.first)),
          floatsOf(*reinterpret_cast<device const vec<From, 4>*>(from + place.second))},
      angles);
  *reinterpret_cast<device vec<Into, 4>*>(into + place.first) = roundedFour(rotated.first, Into());
  *reinterpret_cast<device vec<Into, 4>*>(into + place.second) = roundedFour(rotated.second, Into());
}

template <typename From, typename Into>
inline void copyFour(device const From* from, device Into* into, uint at) {
  const vec<From, 4> x = *reinterpret_cast<device const vec<From, 4>*>(from + at);
  *reinterpret_cast<device vec<Into, 4>*>(into + at) =
      vec<Into, 4>(copied(x.x, Into()), copied(x.y, Into()), copied(x.z, Into()), copied(x.w, Into()));
}

template <typename From, typename Into>
inline void copyUnit(device const From* from, device Into* into, RopePlace place) {
  if (ropeIsVectorized) {
    copyFour(from, into, place.first);
    copyFour(from, into, place.second);
  } else {
    into[place.first] = copied(from[place.first], Into());
    into[place.second] = copied(from[place.second], Into());
  }
}

template <typename From, typename Into>
kernel void multiRoPE(
    constant MultiRoPEParams& p [[buffer(kMultiRoPEParams)]],
    constant uint2* frequencies [[buffer(kMultiRoPEFrequencies)]],
    device const From* queries [[buffer(kMultiRoPEQueries), function_constant(ropeIsOutOfPlace)]],
    device Into* rotatedQueries [[buffer(kMultiRoPERotatedQueries)]],
    device const From* keys [[buffer(kMultiRoPEKeys), function_constant(ropeHasKeysOutOfPlace)]],
    device Into* rotatedKeys [[buffer(kMultiRoPERotatedKeys), function_constant(ropeHasKeys)]],
    device const uint* positions [[buffer(kMultiRoPEPositions), function_constant(ropeHasPositions)]],
    device const uint* offsets [[buffer(kMultiRoPEOffsets), function_constant(ropeHasOffsets)]],
    uint3 at [[thread_position_in_grid]]) {
  constant MultiRoPEOperand* operand = &p.queries;
  device Into* into = rotatedQueries;
  uint group = at.y;
  bool isKey = false;
  if (ropeHasKeys) {
    if (at.y >= p.queries.headGroups) {
      operand = &p.keys;
      into = rotatedKeys;
      group = at.y - p.queries.headGroups;
      isKey = true;
    }
  }
  device const From* from = reinterpret_cast<device const From*>(into);
  if (ropeIsOutOfPlace && !isKey) {
    from = queries;
  }
  if (ropeHasKeysOutOfPlace && isKey) {
    from = keys;
  }

  const RopeToken token = ropeToken(p, at.z);
  const RopePlace place = ropePlace(p, at.x);
  RopeAngles angles = {float4(0.0f), float4(0.0f)};
  if (place.isRotated) {
    angles = ropeAngles(p, frequencies, positions, offsets, token, at.x);
  }

  from += token.sequence * operand->fromSequenceStride + token.token * operand->fromTokenStride;
  into += token.sequence * operand->intoSequenceStride + token.token * operand->intoTokenStride;
  const uint end = min(group * p.headsPerGroup + p.headsPerGroup, operand->heads);
  for (uint head = group * p.headsPerGroup; head < end; ++head) {
    device const From* source = from + head * operand->fromHeadStride;
    device Into* target = into + head * operand->intoHeadStride;
    if (!place.isRotated) {
      copyUnit(source, target, place);
    } else if (ropeIsVectorized) {
      rotateFourPairs(source, target, place, angles);
    } else {
      rotatePair(source, target, place, Rotation{angles.cosine.x, angles.sine.x});
    }
  }
}

#define ROW(from, into) instantiate_kernel("multiRoPE_" #from "_" #into, multiRoPE, from, into)
MNK_MULTI_ROPE_DTYPES(ROW)
#undef ROW
