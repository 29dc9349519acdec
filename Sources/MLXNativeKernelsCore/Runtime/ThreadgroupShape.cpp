#include "Runtime/ThreadgroupShape.hpp"

#include <algorithm>

namespace mnk {

namespace {

// Eight simdgroups; larger threadgroups only waste more threads at the edges of a grid.
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

Size3 shrinkToLimit(uint32_t maxThreads, Size3 threadgroup) {
  constexpr uint32_t kSimdgroup = 32;
  threadgroup[0] = std::min(threadgroup[0], std::max(maxThreads / kSimdgroup, 1u) * kSimdgroup);
  return threadgroup;
}

Grid shrinkToLimit(uint32_t maxThreads, Grid grid) {
  const uint32_t fewest = grid.minThreads;
  if (fewest == 0) return grid;
  const uint32_t planned = grid.threadgroup[0] / fewest;
  grid.threadgroup = shrinkToLimit(std::max(maxThreads, fewest), grid.threadgroup);
  const uint32_t left = std::max(grid.threadgroup[0] / fewest, 1u);
  if (grid.isShared && left < planned) grid.extent[2] *= (planned + left - 1) / left;
  return grid;
}

}  // namespace mnk
