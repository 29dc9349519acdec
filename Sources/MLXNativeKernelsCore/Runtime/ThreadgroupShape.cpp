#include "Encoding/ThreadgroupShape.hpp"

#include <algorithm>

namespace mnk {

namespace {

// Enough threads to fill a simdgroup eight times; larger groups only make the edges of a grid coarser.
constexpr uint32_t kPreferredThreads = 256;

}  // namespace

Size3 threadgroupFor(const Size3& grid, uint32_t maxThreads) {
  uint32_t left = std::max(1u, std::min(kPreferredThreads, maxThreads));
  Size3 shape{1, 1, 1};
  for (size_t axis = 0; axis < 3; ++axis) {
    shape[axis] = std::max(1u, std::min(grid[axis], left));
    left /= shape[axis];
  }
  return shape;
}

}  // namespace mnk
