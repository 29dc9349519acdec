// The constants of the codecs as they ship, for tests that judge them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace mnk::test::shipped {

using uint = uint32_t;
#define constant inline constexpr
#include "Lib/Mlx1Tables.h"
#include "Lib/TurboTables.h"
#undef constant

// Positive halves. The last boundary is the one that nothing passes.
struct Codebook {
  int bits;
  std::span<const float> levels, boundaries;
};

inline Codebook turbo(int bits) {
  const size_t count = size_t(1) << (bits - 1);
  return {bits, std::span(kTurboLevels).subspan(count - 2, count),
          std::span(kTurboBoundaries).subspan(count - 2, count)};
}

inline Codebook mlx1(int bits) {
  const size_t count = size_t(1) << (bits - 1), first = bits == 8 ? 56 : count - 8;
  return {bits, std::span(kMlx1Levels).subspan(first, count), std::span(kMlx1Boundaries).subspan(first, count)};
}

}  // namespace mnk::test::shipped
