#include "Ops/HeadsMemory.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "Support/CheckedMath.hpp"

namespace mnk {

namespace {

using Strides = HeadsView::Strides;

// Beyond this many regions, one that covers them all is better for those who compare regions.
constexpr uint64_t kMostRegions = 64;

struct Axis {
  uint64_t count;
  uint64_t stride;
};

// The axes with more than one entry, the least stride first.
std::vector<Axis> axesOf(const Strides& strides) {
  std::vector<Axis> axes{{strides.heads, strides.headStride},
                         {strides.tokens, strides.tokenStride},
                         {strides.sequences, strides.sequenceStride}};
  std::erase_if(axes, [](const Axis& axis) { return axis.count == 1; });
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  return axes;
}

bool isEmpty(const Strides& strides) {
  return strides.sequences == 0 || strides.tokens == 0 || strides.heads == 0 || strides.headDim == 0;
}

// From the first element of the first vector to the end of the last.
std::optional<uint64_t> spanOf(const Strides& strides) {
  std::optional<uint64_t> span = strides.headDim;
  for (const Axis& axis : axesOf(strides)) {
    const auto distance = checkedMultiply(axis.count - 1, axis.stride);
    span = distance && span ? checkedAdd(*span, *distance) : std::nullopt;
  }
  return span;
}

// Rows of bytes that the run has in all vectors. Axes whose entries follow each other without a gap are joined; of
// those that are left the longest becomes a region's rows, and the others its copies.
std::vector<Region> regionsOf(const Strides& strides, const ElementRun& run, uint64_t elementBytes) {
  uint64_t rowElements = run.count;
  std::vector<Axis> left;
  for (const Axis& axis : axesOf(strides)) {
    if (left.empty() && axis.stride == rowElements) {
      rowElements *= axis.count;
    } else if (!left.empty() && axis.stride == left.back().count * left.back().stride) {
      left.back().count *= axis.count;
    } else {
      left.push_back(axis);
    }
  }
  const auto longest =
      std::max_element(left.begin(), left.end(), [](const Axis& a, const Axis& b) { return a.count < b.count; });
  Axis rows{1, rowElements};
  if (longest != left.end()) {
    rows = *longest;
    left.erase(longest);
  }
  std::vector<uint64_t> starts{run.begin};
  for (const Axis& axis : left) {
    if (axis.count > kMostRegions / starts.size()) {
      const uint64_t covered = (*spanOf(strides) - strides.headDim + run.count) * elementBytes;
      return {{.offset = run.begin * elementBytes, .rowBytes = covered, .rowStride = covered, .rows = 1}};
    }
    const size_t before = starts.size();
    for (uint64_t i = 1; i < axis.count; ++i) {
      for (size_t start = 0; start < before; ++start) starts.push_back(starts[start] + i * axis.stride);
    }
  }
  std::vector<Region> regions;
  for (uint64_t start : starts) {
    regions.push_back({.offset = start * elementBytes,
                       .rowBytes = rowElements * elementBytes,
                       .rowStride = rows.stride * elementBytes,
                       .rows = rows.count});
  }
  return regions;
}

}  // namespace

bool liesInside(const HeadsView& view) {
  const Strides strides = view.resolved();
  if (isEmpty(strides)) return true;
  const auto span = spanOf(strides);
  return span && fits(strides.offset, *span, view.tensor.shape().elementCount());
}

bool meetsItself(const Strides& strides) {
  if (isEmpty(strides)) return false;
  uint64_t extent = strides.headDim;
  for (const Axis& axis : axesOf(strides)) {
    if (axis.stride < extent) return true;
    extent += (axis.count - 1) * axis.stride;
  }
  return false;
}

uint64_t elementAlignment(const HeadsView& view, uint64_t most) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  uint64_t bits = most | (view.tensor.range().begin / bytes + strides.offset);
  for (const Axis& axis : axesOf(strides)) bits |= axis.stride;
  return uint64_t{1} << std::countr_zero(bits);
}

uint64_t bytesOf(const HeadsView& view, std::span<const ElementRun> runs) {
  const Strides strides = view.resolved();
  uint64_t elements = 0;
  for (const ElementRun& run : runs) elements += run.count;
  return elements * strides.totalTokens() * strides.heads * byteSize(view.tensor.dtype());
}

Binding bindingOf(uint32_t index, const HeadsView& view, std::span<const ElementRun> runs, Access access) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  Binding binding{.index = index,
                  .buffer = view.tensor.buffer(),
                  .offset = view.tensor.byteOffset() + strides.offset * bytes,
                  .length = isEmpty(strides) ? 0 : *spanOf(strides) * bytes,
                  .reads = {},
                  .writes = {}};
  if (binding.length == 0) return binding;
  for (const ElementRun& run : runs) {
    const auto regions = regionsOf(strides, run, bytes);
    if (access != Access::write) binding.reads.insert(binding.reads.end(), regions.begin(), regions.end());
    if (access != Access::read) binding.writes.insert(binding.writes.end(), regions.begin(), regions.end());
  }
  return binding;
}

}  // namespace mnk
