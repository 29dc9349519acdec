// From a position to a cosine and a sine. Angles are fractions of a turn in integers, so that nothing is lost at long
// positions, and the polynomials below need only operations that every device rounds correctly: their error is less
// than 2^-23 whatever the accuracy of a device's own sine.
#pragma once
#include "../Types/MultiRoPETypes.h"
#include "Words.h"

struct Rotation {
  float cosine;
  float sine;
};

inline uint axisOf(RotaryFrequency frequency) {
  return frequency.low & 3u;
}

// In units of 2^-32 turns, whole turns left out.
inline uint turnsAt(uint position, RotaryFrequency frequency) {
  const ulong low = ulong(position) * (frequency.low & ~3u);
  const ulong high = ulong(position) * frequency.high;
  return uint((high + (low >> 32)) & 0xfffffffful);
}

inline Rotation rotationOf(uint turns) {
  // The nearest quarter of a turn, and what is left: at most an eighth to either side.
  const uint within = turns & 0x3fffffffu;
  const bool isLate = within >= 0x20000000u;
  const uint quarter = (turns >> 30) + (isLate ? 1u : 0u);
  const int rest = isLate ? int(within) - 0x40000000 : int(within);

  // Minimax polynomials for angles up to pi / 4, in radians.
  const float x = float(rest) * 1.4629180792671596e-9f;
  const float z = x * x;
  const float sineTail = fma(z, fma(z, -0.00019517267f, 0.008332178f), -0.16666655f);
  const float sine = fma(x * z, sineTail, x);
  const float cosineTail = fma(z, fma(z, fma(z, 2.4438415e-5f, -0.0013887368f), 0.041666646f), -0.5f);
  const float cosine = fma(z, cosineTail, 1.0f);

  const bool isSwapped = (quarter & 1u) != 0u;
  const float swappedCosine = isSwapped ? sine : cosine;
  const float swappedSine = isSwapped ? cosine : sine;
  const bool isCosineNegative = ((quarter + 1u) & 2u) != 0u;
  const bool isSineNegative = (quarter & 2u) != 0u;
  return Rotation{isCosineNegative ? -swappedCosine : swappedCosine, isSineNegative ? -swappedSine : swappedSine};
}

// A position backwards turns backwards. Beyond 2^32 positions count modulo 2^32.
inline Rotation rotationAt(long position, RotaryFrequency frequency) {
  const bool isBackwards = position < 0;
  const uint distance = uint((isBackwards ? -position : position) & 0xffffffffl);
  const Rotation forwards = rotationOf(turnsAt(distance, frequency));
  return Rotation{forwards.cosine, isBackwards ? -forwards.sine : forwards.sine};
}
