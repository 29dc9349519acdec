// RoPE for vectors whose elements are distributed over lanes, four neighbors at a time. The partner of each element is
// loaded again, because in some pairings another lane holds it.
#pragma once
#include "FourElements.h"
#include "RotaryPairs.h"

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
