// What the rotations of one encoder leave in memory, and the positions of the cache for which they rotate.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "HeadsViews.hpp"

namespace mnk::fuzz {

// Where the first vector of a row begins.
struct RowPlace {
  uint32_t region = 0;
  uint64_t byte = 0;

  auto operator<=>(const RowPlace&) const = default;
};
// The places of a view's rows; none where there is no tensor.
std::vector<RowPlace> rowPlaces(const HeadsSpec& heads);

class RotatedMemory {
 public:
  bool isEmpty() const { return rows_.empty(); }
  // Rows that were rotated for these positions of the cache. Without positions, they were rotated by numbers.
  void write(const std::vector<RowPlace>& places, const std::vector<float>& numbers,
             const std::vector<uint64_t>& positions);
  // The numbers of rows that were written.
  std::vector<float> read(const std::vector<RowPlace>& places) const;
  // The position for which a row was rotated last. What has overwritten the row since may have prepared it for any
  // other position, so that only the same position still counts.
  std::optional<uint64_t> rotatedFor(const RowPlace& place, uint64_t usedAt) const;

 private:
  struct Row {
    std::vector<float> numbers;
    std::optional<uint64_t> position;
    bool isOverwritten = false;
  };
  std::map<RowPlace, Row> rows_;
};

}  // namespace mnk::fuzz
