// What all kernels that apply RoPE share: which pairs rotate, by which angle, and the rotation itself.
#pragma once
#include "RotaryAngle.h"

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

// The angles of a unit's pairs: of one, or of four.
struct RopeAngles {
  float4 cosine;
  float4 sine;
};

inline RopeAngles ropeAngles(
    constant MultiRoPEParams& p, constant uint2* frequencies, device const uint* positions, device const uint* offsets,
    RopeToken at, uint unit) {
  RopeAngles angles = {float4(0.0f), float4(0.0f)};
  for (uint i = 0; i < (ropeIsVectorized ? 4u : 1u); ++i) {
    const uint2 frequency = frequencies[ropeIsVectorized ? 4u * unit + i : unit];
    const Rotation rotation = ropeRotation(p, frequency, positions, offsets, at);
    angles.cosine[i] = rotation.cosine;
    angles.sine[i] = rotation.sine;
  }
  return angles;
}

// Rotates the two elements of a pair, or of several. Explicit fma, because a compiler could contract the scalar and the
// vector version differently. Unless it reorders operations, results do not depend on where a vector is stored.
template <typename T>
inline T rotatedFirst(T x, T y, T cosine, T sine) {
  return fma(x, cosine, -(y * sine));
}
template <typename T>
inline T rotatedSecond(T x, T y, T cosine, T sine) {
  return fma(x, sine, y * cosine);
}

// The elements of a unit at its two places: first and second elements, or consecutive interleaved pairs.
struct RopeElements {
  float4 first;
  float4 second;
};

inline RopeElements rotatedPairs(RopeElements from, RopeAngles angles) {
  const bool isMixed = ropeIsInterleaved && ropeIsVectorized;
  const float4 a = from.first;
  const float4 b = from.second;
  const float4 x = isMixed ? float4(a.x, a.z, b.x, b.z) : a;
  const float4 y = isMixed ? float4(a.y, a.w, b.y, b.w) : b;
  const float4 u = rotatedFirst(x, y, angles.cosine, angles.sine);
  const float4 v = rotatedSecond(x, y, angles.cosine, angles.sine);
  return RopeElements{isMixed ? float4(u.x, v.x, u.y, v.y) : u, isMixed ? float4(u.z, v.z, u.w, v.w) : v};
}
