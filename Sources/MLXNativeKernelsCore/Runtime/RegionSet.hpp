// Regions of one memory space, indexed so that an overlap query takes time proportional to the rows of the queried
// region and the logarithm of the number of regions.
#pragma once
#include <cstdint>
#include <map>

#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/Bytes.hpp"

namespace mnk {

// Whether a row of a non-empty region overlaps one of the ranges.
bool overlapsAny(const IntervalSet& ranges, const Region& rows);

// Regions with the same stride. Memory is viewed as a table whose lines are one stride long. The rows of a region then
// form a rectangle, or two if they cross the end of a line. Tokens appended to one sequence of a cache are adjacent in
// this table and merge into one rectangle.
class StridedRows {
 public:
  explicit StridedRows(uint64_t stride) : stride_(stride) {}

  // Adds a region with this stride.
  void add(const Region& rows);
  bool overlapsRows(const Region& rows) const;
  // Whether a row overlaps the range.
  bool overlapsRange(uint64_t begin, uint64_t end) const;
  // Whether the range overlaps the extent, gaps included, of a region.
  bool enclosesAny(uint64_t begin, uint64_t end) const { return enclosing_.overlaps(begin, end); }
  // The number of stored ranges, for tests of memory use.
  size_t count() const;

 private:
  struct Rectangle {
    uint64_t firstLine, lastLine;
    uint64_t begin, end;  // within each line
  };
  struct Lines {
    uint64_t last;
    IntervalSet bytes;
  };
  template <typename Visit>
  bool anyRectangle(const Region& rows, Visit visit) const;
  template <typename Visit>
  bool anyRectangle(uint64_t begin, uint64_t end, Visit visit) const;
  bool overlaps(const Rectangle& rectangle) const;
  void add(const Rectangle& rectangle);
  void splitBefore(uint64_t line);
  void joinBefore(uint64_t line);

  uint64_t stride_;
  IntervalSet enclosing_;
  std::map<uint64_t, Lines> lines_;  // by first line; each entry is a run of lines with the same, non-empty bytes
};

class RegionSet {
 public:
  // Without memory for all of it, a part may have been added.
  void add(const Region& region);
  // Whether `overlap` holds for the region and one that was added.
  bool overlaps(const Region& region) const;
  size_t count() const;

 private:
  IntervalSet ranges_;                       // of regions of one row
  std::map<uint64_t, StridedRows> strided_;  // the others, by stride
};

}  // namespace mnk
