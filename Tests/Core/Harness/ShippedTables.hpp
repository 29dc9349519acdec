// The codec constants as they ship, for tests that check them.
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

}  // namespace mnk::test::shipped
