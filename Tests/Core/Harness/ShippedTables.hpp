// The codec constants as they ship. The suite CodecTables checks them by quadrature and checksums; references read them
// because a format is its constants.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace mnk::test::shipped {

using uint = uint32_t;
#define constant inline constexpr
#include "Common/Mlx1Tables.h"
#include "Common/TurboTables.h"
#undef constant

// Positive halves. No value exceeds the last boundary.
struct Codebook {
  int bits;
  std::span<const float> levels;
  std::vector<float> boundaries;
};

inline Codebook turbo(int bits) {
  const size_t count = size_t(1) << (bits - 1);
  const auto levels = std::span(kTurboCodebooks).subspan(count - 2, count);
  std::vector<float> boundaries;
  for (size_t i = 0; i + 1 < count; i++) boundaries.push_back((levels[i] + levels[i + 1]) / 2);
  boundaries.push_back(std::numeric_limits<float>::max());
  return {bits, levels, boundaries};
}

inline Codebook mlx1(int bits) {
  const size_t count = size_t(1) << (bits - 1), first = bits == 8 ? 56 : count - 8;
  const auto boundaries = std::span(kMlx1Boundaries).subspan(first, count);
  return {bits, std::span(kMlx1Codebooks).subspan(first, count), {boundaries.begin(), boundaries.end()}};
}

// A word for each 32 elements, and one for the rest: if bit j % 32 of word j / 32 is set, element j changes its sign.
inline std::span<const uint> turboSigns(uint64_t headDim) {
  size_t first = 0;
  for (const uint64_t before : {32, 64, 128, 256, 512, 80, 96, 112, 192}) {
    if (before == headDim) break;
    first += (before + 31) / 32;
  }
  return std::span(kTurboSigns).subspan(first, (headDim + 31) / 32);
}

}  // namespace mnk::test::shipped
