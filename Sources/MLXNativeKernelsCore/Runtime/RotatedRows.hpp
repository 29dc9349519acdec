// Which rows an encoder has rotated by positions that follow a cache, so that they are used at these positions only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "MLXNativeKernels/HeadsView.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

class RotatedRows {
 public:
  // `recorded` is what the encoder's dispatches touch, in their order.
  explicit RotatedRows(const std::vector<Touched>& recorded) : recorded_(recorded) {}

  // Makes room, so that `add` cannot fail for as many runs.
  void reserve(size_t runs);
  // Rows of `view`, from row `first` on, were rotated for `position` of a cache and the positions after it. Rows of
  // several sequences count through all of them; those of one call are of one sequence.
  void add(const HeadsView& view, uint64_t first, uint64_t rows, const void* cache, uint64_t position,
           bool hasOffsets) noexcept;

  struct Row {
    uint64_t index = 0;  // in the view
    uint64_t place = 0;  // the position at which it is used
    std::optional<uint64_t> rotatedFor = {};
    const void* cache = nullptr;
    bool hasOffsets = false;
  };
  // The first of `rows` rows, from row `first` on and used at `position` and those after it, for which `isWrong` holds.
  template <typename IsWrong>
  std::optional<Row> firstWrong(const HeadsView& view, uint64_t first, uint64_t rows, uint64_t position,
                                IsWrong isWrong) const {
    const Places places(view);
    for (uint64_t row = first; row < first + rows;) {
      Row found{.index = row, .place = position + (row - first)};
      const auto [run, index, alike] = latest(places, row, found.place);
      if (run) found.rotatedFor = run->position + index, found.cache = run->cache, found.hasOffsets = run->hasOffsets;
      if (isWrong(found)) return found;
      row += alike;
    }
    return std::nullopt;
  }

 private:
  struct Run {
    const void* space;
    uint64_t first;   // address of the first vector
    uint64_t stride;  // in bytes
    uint64_t rows;
    const void* cache;
    uint64_t position;
    bool hasOffsets;
    size_t recorded;  // how much the encoder had recorded then
  };
  // Where the first vectors of rows are.
  struct Places {
    explicit Places(const HeadsView& view);
    uint64_t at(uint64_t row) const { return first + row / tokens * sequenceStride + row % tokens * tokenStride; }
    const void* space;
    uint64_t first, tokens, sequenceStride, tokenStride, vectorBytes;
  };
  struct Found {
    const Run* run = nullptr;
    uint64_t row = 0;    // in the run
    uint64_t alike = 1;  // how many rows of the view, from this one on, this run rotated last
  };
  // The last rotation of this row, or none if the row was written since and is used at another position.
  Found latest(const Places& places, uint64_t row, uint64_t position) const;
  bool isWrittenSince(const Run& run, const Region& vector) const;

  const std::vector<Touched>& recorded_;
  std::vector<Run> runs_;
};

}  // namespace mnk
