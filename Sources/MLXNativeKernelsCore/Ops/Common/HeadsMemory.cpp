#include "Ops/Common/HeadsMemory.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

using Strides = HeadsView::Strides;

// With more regions than this, one region that covers them all is cheaper to compare.
constexpr uint64_t kMaxRegions = 64;

struct Axis {
  uint64_t count;
  uint64_t stride;
};

// The axes by ascending stride. An axis of extent 1 has stride 0, because its stride is never used.
std::array<Axis, 3> axesOf(const Strides& strides) {
  std::array<Axis, 3> axes{{{strides.heads, strides.headStride},
                            {strides.tokens, strides.tokenStride},
                            {strides.sequences, strides.sequenceStride}}};
  for (Axis& axis : axes) {
    if (axis.count == 1) axis.stride = 0;
  }
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

// The byte regions of the run in all vectors. Contiguous axes are joined. The longest remaining axis becomes the rows
// of a region, and the others multiply the regions.
std::vector<Region> regionsOf(const Strides& strides, const ElementRun& run, uint64_t elementBytes) {
  uint64_t rowElements = run.count;
  std::vector<Axis> left;
  for (const Axis& axis : axesOf(strides)) {
    if (axis.count == 1) continue;
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
    if (axis.count > kMaxRegions / starts.size()) {
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

// The addresses of all vectors, in order.
std::vector<uint64_t> startsOf(const HeadsView& view) {
  const Strides s = view.resolved();
  const uint64_t first = rangeOf(view).begin;
  std::vector<uint64_t> starts;
  for (uint64_t sequence = 0; sequence < s.sequences; ++sequence) {
    for (uint64_t token = 0; token < s.tokens; ++token) {
      for (uint64_t head = 0; head < s.heads; ++head) {
        const uint64_t element = sequence * s.sequenceStride + token * s.tokenStride + head * s.headStride;
        starts.push_back(first + element * byteSize(view.tensor.dtype()));
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

}  // namespace

bool isLayoutKnown(const HeadsView& view) {
  return view.strides || view.layout <= KVLayout::tokenMajor;
}

bool liesInside(const HeadsView& view) {
  const Strides strides = view.resolved();
  if (isEmpty(strides)) return true;
  const auto span = spanOf(strides);
  return span && fits(strides.offset, *span, view.tensor.shape().elementCount());
}

bool overlapsItself(const Strides& strides) {
  if (isEmpty(strides)) return false;
  uint64_t extent = strides.headDim;
  for (const Axis& axis : axesOf(strides)) {
    if (axis.count > 1 && axis.stride < extent) return true;
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

std::string placesText(const HeadsView& view) {
  const Strides s = view.resolved();
  return fmt::format("at {}, strides {}, {} and {}, in {} elements", s.offset, s.sequenceStride, s.tokenStride,
                     s.headStride, view.tensor.shape().elementCount());
}

MemoryRange rangeOf(const HeadsView& view) {
  const Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  const MemoryRange tensor = view.tensor.range();
  const uint64_t begin = tensor.begin + strides.offset * bytes;
  return {tensor.space, begin, isEmpty(strides) ? begin : begin + *spanOf(strides) * bytes};
}

uint64_t vectorCount(const HeadsView& view) {
  const Strides strides = view.resolved();
  return strides.totalTokens() * strides.heads;
}

bool vectorsOverlap(const HeadsView& a, const HeadsView& b) {
  const auto starts = startsOf(a);
  const uint64_t lengths[] = {a.resolved().headDim * byteSize(a.tensor.dtype()),
                              b.resolved().headDim * byteSize(b.tensor.dtype())};
  for (const uint64_t start : startsOf(b)) {
    // Only the first vector of a that ends after the start can overlap.
    const auto next = std::upper_bound(starts.begin(), starts.end(), start,
                                       [&](uint64_t at, uint64_t other) { return at < other + lengths[0]; });
    if (next != starts.end() && *next < start + lengths[1]) return true;
  }
  return false;
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
  // The offset of a view without elements may be anywhere.
  Binding binding{.index = index,
                  .buffer = view.tensor.buffer(),
                  .offset = view.tensor.byteOffset() + (isEmpty(strides) ? 0 : strides.offset * bytes),
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
