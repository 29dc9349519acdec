// Turns pairs of elements by their token's position. Grid: (unit, group of heads, token of any sequence), where the
// groups of the keys follow those of the queries. A thread works out the angles of its unit once, for all heads of its
// group. It alone reads and writes its elements, so results may take the place of what they are made of; then they are
// read where they are written, because buffers of two arguments may not alias.
#include "../Common/Elements.h"
#include "MultiRoPETypes.h"
#include "RotaryAngle.h"

pipeline_constant(bool, ropeHasKeys, kMultiRoPEHasKeys);
pipeline_constant(bool, ropeIsApart, kMultiRoPEIsApart);
pipeline_constant(bool, ropeHasKeysApart, kMultiRoPEHasKeysApart);
pipeline_constant(bool, ropeHasPositions, kMultiRoPEHasPositions);
pipeline_constant(bool, ropeHasOffsets, kMultiRoPEHasOffsets);
pipeline_constant(bool, ropeIsInterleaved, kMultiRoPEIsInterleaved);
pipeline_constant(bool, ropeIsVectorized, kMultiRoPEIsVectorized);

// Which token a thread works on.
struct RopeToken {
  uint index;  // among those of all sequences
  uint sequence;
  uint token;  // in its sequence
};

inline RopeToken ropeToken(constant MultiRoPEParams& p, uint index) {
  // Most calls have one sequence, or one token of each, and need no division.
  if (p.totalTokens == p.tokens) {
    return RopeToken{index, 0u, index};
  }
  const uint sequence = p.tokens == 1u ? index : index / p.tokens;
  return RopeToken{index, sequence, index - sequence * p.tokens};
}

inline long ropeNumber(uint bits, bool isSigned) {
  return isSigned ? long(as_type<int>(bits)) : long(bits);
}

inline long ropePosition(
    constant MultiRoPEParams& p, device const uint* positions, device const uint* offsets, RopeToken at, uint axis) {
  long position = long(p.firstPosition) + long(at.token);
  if (ropeHasPositions) {
    const ulong index = ulong(axis) * p.axisStride + at.index;
    position = ropeNumber(positions[index], (p.signs & kMultiRoPESignedPositions) != 0u);
  }
  if (ropeHasOffsets) {
    position += ropeNumber(offsets[at.sequence], (p.signs & kMultiRoPESignedOffsets) != 0u);
  }
  return position;
}

inline Rotation ropeRotation(
    constant MultiRoPEParams& p, uint2 frequency, device const uint* positions, device const uint* offsets,
    RopeToken at) {
  const Rotation rotation = rotationAt(ropePosition(p, positions, offsets, at, axisOf(frequency)), frequency);
  return Rotation{rotation.cosine * p.cosineScale, rotation.sine * p.sineScale};
}

// Where the elements of a unit lie in a vector.
struct RopePlace {
  uint first;
  uint second;
  bool isRotated;
};

inline RopePlace ropePlace(constant MultiRoPEParams& p, uint unit) {
  const bool isRotated = unit < p.rotatedUnits;
  const uint pair = ropeIsVectorized ? 4u * unit : unit;
  if (ropeIsInterleaved) {
    return RopePlace{2u * pair, 2u * pair + (ropeIsVectorized ? 4u : 1u), isRotated};
  }
  const uint first = isRotated ? pair : pair + p.copiedOffset;
  return RopePlace{first, first + (isRotated ? p.pairDistance : p.copiedDistance), isRotated};
}

// One pair. Fused by name, because a compiler may fuse one way here and another way for four pairs. Unless it reorders,
// results do not depend on where a vector lies.
template <typename From, typename Into>
inline void turnPair(device const From* from, device Into* into, RopePlace place, Rotation rotation) {
  const float x = floatOf(from[place.first]);
  const float y = floatOf(from[place.second]);
  into[place.first] = rounded(fma(x, rotation.cosine, -(y * rotation.sine)), Into());
  into[place.second] = rounded(fma(x, rotation.sine, y * rotation.cosine), Into());
}

// Four pairs: first elements and second elements, or pair after pair.
template <typename From, typename Into>
inline void turnFour(device const From* from, device Into* into, RopePlace place, float4 cosine, float4 sine) {
  const float4 a = floatsOf(*reinterpret_cast<device const vec<From, 4>*>(from + place.first));
  const float4 b = floatsOf(*reinterpret_cast<device const vec<From, 4>*>(from + place.second));
  const float4 x = ropeIsInterleaved ? float4(a.x, a.z, b.x, b.z) : a;
  const float4 y = ropeIsInterleaved ? float4(a.y, a.w, b.y, b.w) : b;
  const float4 u = fma(x, cosine, -(y * sine));
  const float4 v = fma(x, sine, y * cosine);
  *reinterpret_cast<device vec<Into, 4>*>(into + place.first) =
      roundedFour(ropeIsInterleaved ? float4(u.x, v.x, u.y, v.y) : u, Into());
  *reinterpret_cast<device vec<Into, 4>*>(into + place.second) =
      roundedFour(ropeIsInterleaved ? float4(u.z, v.z, u.w, v.w) : v, Into());
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
    device const From* queries [[buffer(kMultiRoPEQueries), function_constant(ropeIsApart)]],
    device Into* rotatedQueries [[buffer(kMultiRoPERotatedQueries)]],
    device const From* keys [[buffer(kMultiRoPEKeys), function_constant(ropeHasKeysApart)]],
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
  if (ropeIsApart && !isKey) {
    from = queries;
  }
  if (ropeHasKeysApart && isKey) {
    from = keys;
  }

  const RopeToken token = ropeToken(p, at.z);
  const RopePlace place = ropePlace(p, at.x);
  float4 cosine = float4(0.0f);
  float4 sine = float4(0.0f);
  if (place.isRotated) {
    for (uint i = 0; i < (ropeIsVectorized ? 4u : 1u); ++i) {
      const uint2 frequency = frequencies[ropeIsVectorized ? 4u * at.x + i : at.x];
      const Rotation rotation = ropeRotation(p, frequency, positions, offsets, token);
      cosine[i] = rotation.cosine;
      sine[i] = rotation.sine;
    }
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
      turnFour(source, target, place, cosine, sine);
    } else {
      turnPair(source, target, place, Rotation{cosine.x, sine.x});
    }
  }
}

#define ROW(from, into) instantiate_kernel("multiRoPE_" #from "_" #into, multiRoPE, from, into)
MNK_MULTI_ROPE_DTYPES(ROW)
#undef ROW
