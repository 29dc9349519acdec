// Rotation of vectors whose elements are spread over lanes, four neighbors at a time: partners are loaded once more,
// because for some pairings another lane holds them.
#pragma once
#include "FourElements.h"
#include "RotaryPairs.h"

// Which pair an element belongs to, where a unit is one pair, and where its other element is.
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

// Four neighbors x of the vector that starts at `start`, from element `first` on, a multiple of four: rotated, and
// rounded to the type that the vector has. Where vectors are aligned and pairs come in fours, so do partners.
MNK_SHARED float4 rotatedFour(
    constant MultiRoPEParams& p, constant uint2* frequencies, device const uint* positions, device const uint* offsets,
    RopeToken at, device const uchar* from, uint type, ulong start, uint first, float4 x) {
  float4 partners = float4(x.y, x.x, x.w, x.z);
  if (!ropeIsInterleaved && ropeIsVectorized) {
    partners = loadFour(from, type, true, start + ropeElement(p, first).partner);
  }
  float4 rotated = x;
  MNK_UNROLL
  for (ushort i = 0; i < 4; ++i) {
    const RopeElement element = ropeElement(p, first + i);
    if (element.pair < p.rotatedUnits) {
      float partner = partners[i];
      if (!ropeIsInterleaved && !ropeIsVectorized) {
        partner = loadElement(from, type, start + element.partner);
      }
      const Rotation rotation = ropeRotation(p, frequencies[element.pair], positions, offsets, at);
      rotated[i] = element.isSecond ? rotatedSecond(partner, x[i], rotation.cosine, rotation.sine)
                                    : rotatedFirst(x[i], partner, rotation.cosine, rotation.sine);
    }
  }
  return roundedAs(rotated, type);
}
