// Computes the cosine and sine for a position. Angles are integer fractions of a turn, so that large positions lose no
// precision. The polynomials use only operations that every device rounds correctly: their error is below 2^-23,
// independent of the device's own sine.
#pragma once
#include "MetalCompat.h"
#include "RotaryTypes.h"

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
