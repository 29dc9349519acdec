// What all kernels that apply RoPE share: which pairs rotate, by which angle, and the rotation itself.
#pragma once
#include "Elements.h"
#include "MetalCompat.h"
#include "RotaryTypes.h"

// Computes the cosine and sine for a position. Angles are integer fractions of a turn, so that large positions lose no
// precision. The polynomials use only operations that every device rounds correctly: their error is below 2^-23,
// independent of the device's own sine.
struct Rotation {
  float cosine;
  float sine;
};

// `frequency` is a RotaryFrequency loaded as two words: x is low, y is high.
inline uint axisOf(uint2 frequency) {
  return frequency.x & 3u;
}

// The angle at a position modulo one turn, in units of 2^-32 turns.
inline uint turnsAt(uint position, uint2 frequency) {
  const ulong low = ulong(position) * (frequency.x & ~3u);
  const ulong high = ulong(position) * frequency.y;
  return uint(high + (low >> 32));
}

inline float negatedIf(bool isNegative, float x) {
  return as_type<float>(as_type<uint>(x) ^ (isNegative ? 0x80000000u : 0u));
}

inline Rotation rotationOf(uint turns) {
  // The nearest quarter turn. The shift discards it and keeps the remainder, at most an eighth of a turn to either
  // side, as a signed number in units of 2^-34 turns.
  const uint quarter = ((turns >> 29) + 1u) >> 1;
  const float x = float(as_type<int>(turns << 2)) * 3.657295198167899e-10f;

  // Minimax polynomials for angles up to pi / 4, in radians.
  const float z = x * x;
  const float sineTail = fma(z, fma(z, -0.00019517267f, 0.008332178f), -0.16666655f);
  const float sine = fma(x * z, sineTail, x);
  const float cosineTail = fma(z, fma(z, fma(z, 2.4438415e-5f, -0.0013887368f), 0.041666646f), -0.5f);
  const float cosine = fma(z, cosineTail, 1.0f);

  const bool isSwapped = (quarter & 1u) != 0u;
  return Rotation{
      negatedIf(((quarter + 1u) & 2u) != 0u, isSwapped ? sine : cosine),
      negatedIf((quarter & 2u) != 0u, isSwapped ? cosine : sine)};
}

// Negative positions rotate backward. Positions are taken modulo 2^32.
inline Rotation rotationAt(long position, uint2 frequency) {
  const bool isBackward = position < 0;
  const uint distance = uint((isBackward ? -position : position) & 0xffffffffl);
  const Rotation forward = rotationOf(turnsAt(distance, frequency));
  return Rotation{forward.cosine, negatedIf(isBackward, forward.sine)};
}

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

// RoPE for vectors whose elements are distributed over lanes, four neighbors at a time. The partner of each element is
// loaded again, because in some pairings another lane holds it.

// The pair of an element if a unit is one pair, and the index of the other element of the pair.
struct RopeElement {
  uint pair;
  uint partner;
  bool isSecond;
};

inline RopeElement ropeElement(constant MultiRoPEParams& p, uint element) {
  if (ropeIsInterleaved) {
    return RopeElement{element / 2u, element ^ 1u, (element & 1u) != 0u};
  }
  const bool isSecond = element >= p.pairDistance;
  const uint pair = isSecond ? element - p.pairDistance : element;
  return RopeElement{pair, isSecond ? pair : pair + p.pairDistance, isSecond};
}

// Rotates x, the four neighbors from element `first`, a multiple of four, of the vector that starts at `start`, and
// rounds them to the vector's type. If vectors are aligned and pairs come in fours, partners are loaded four at a time.
MNK_SHARED float4 rotatedFour(
    constant MultiRoPEParams& p, constant uint2* frequencies, device const uint* positions, device const uint* offsets,
    RopeToken at, device const uchar* from, uint type, ulong start, uint first, float4 x) {
  float4 partners = float4(x.y, x.x, x.w, x.z);
  if (!ropeIsInterleaved && ropeIsVectorized) {
    partners = loadFour(from, type, true, start + ropeElement(p, first).partner);
  }
  float4 rotated;
  MNK_UNROLL
  for (ushort i = 0; i < 4; ++i) {
    const RopeElement element = ropeElement(p, first + i);
    const bool isRotated = element.pair < p.rotatedUnits;
    float partner = partners[i];
    if (!ropeIsInterleaved && !ropeIsVectorized && isRotated) {
      partner = loadElement(from, type, start + element.partner);
    }
    // Not in a branch, so that the angles of the elements are computed at the same time.
    const uint pair = isRotated ? element.pair : 0u;
    const Rotation rotation = ropeRotation(p, frequencies[pair], positions, offsets, at);
    const float asFirst = rotatedFirst(x[i], partner, rotation.cosine, rotation.sine);
    const float asSecond = rotatedSecond(partner, x[i], rotation.cosine, rotation.sine);
    rotated[i] = !isRotated ? x[i] : element.isSecond ? asSecond : asFirst;
  }
  return roundedAs(rotated, type);
}
