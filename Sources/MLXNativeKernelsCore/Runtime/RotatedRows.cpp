#include "Runtime/RotatedRows.hpp"

#include <algorithm>

namespace mnk {

RotatedRows::Places::Places(const HeadsView& view) {
  const HeadsView::Strides strides = view.resolved();
  const uint64_t bytes = byteSize(view.tensor.dtype());
  const MemoryRange memory = view.tensor.range();
  space = memory.space;
  first = memory.begin + strides.offset * bytes;
  tokens = std::max<uint64_t>(strides.tokens, 1);
  sequenceStride = strides.sequenceStride * bytes;
  tokenStride = strides.tokenStride * bytes;
  vectorBytes = strides.headDim * bytes;
}

void RotatedRows::reserve(size_t runs) {
  const size_t needed = runs_.size() + runs;
  if (needed > runs_.capacity()) runs_.reserve(std::max(needed, 2 * runs_.capacity()));
}

void RotatedRows::add(const HeadsView& view, uint64_t first, uint64_t rows, const void* cache, uint64_t position,
                      bool hasOffsets) noexcept {
  const Places places(view);
  runs_.push_back({.space = places.space,
                   .first = places.at(first),
                   .stride = places.tokenStride,
                   .rows = rows,
                   .cache = cache,
                   .position = position,
                   .hasOffsets = hasOffsets,
                   .recorded = recorded_.size()});
}

RotatedRows::Found RotatedRows::latest(const Places& places, uint64_t row, uint64_t position) const {
  const uint64_t begin = places.at(row), end = begin + places.vectorBytes;
  uint64_t nextRotated = UINT64_MAX;  // where a later run begins
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (run->space != places.space) continue;
    const uint64_t index = run->first >= begin ? 0
                           : run->stride == 0  ? run->rows
                                               : (begin - run->first + run->stride - 1) / run->stride;
    if (index >= run->rows) continue;
    if (const uint64_t start = run->first + index * run->stride; start >= end) {
      nextRotated = std::min(nextRotated, start);
      continue;
    }
    if (run->position + index != position && isWrittenSince(*run, {.offset = begin, .rowBytes = places.vectorBytes})) {
      return {};
    }
    Found found{&*run, index};
    if (run->stride == places.tokenStride && run->stride != 0) {
      found.alike =
          std::min({run->rows - index, places.tokens - row % places.tokens, (nextRotated - end) / run->stride + 1});
    }
    return found;
  }
  return {};
}

bool RotatedRows::isWrittenSince(const Run& run, const Region& vector) const {
  const auto begin = recorded_.begin() + static_cast<ptrdiff_t>(std::min(run.recorded, recorded_.size()));
  return std::any_of(begin, recorded_.end(), [&](const Touched& each) {
    return each.isWrite && each.space == run.space && overlap(each.region, vector);
  });
}

}  // namespace mnk
