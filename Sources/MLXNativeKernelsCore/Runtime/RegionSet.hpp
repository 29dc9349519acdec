// Regions of one memory space, indexed so that finding one that a further region overlaps takes a time that grows with
// the rows of that region and the logarithm of how many were added.
#pragma once
#include <cstdint>
#include <map>

#include "MLXNativeKernels/Dispatch.hpp"
#include "Support/IntervalSet.hpp"

namespace mnk {

// Whether a row of a region, which is not empty, meets one of the ranges.
bool meetsAny(const IntervalSet& ranges, const Region& rows);

// Rows of one stride. Memory is seen as a table with a line of one stride's bytes after another, in which the rows of a
// region are a rectangle, or two where they go over the end of a line. Tokens that are appended to one sequence of a
// cache lie side by side there, and become one rectangle.
class StridedRows {
 public:
  explicit StridedRows(uint64_t stride) : stride_(stride) {}

  // Of this stride.
  void add(const Region& rows);
  bool meetsRows(const Region& rows) const;
  // Whether a row meets the range.
  bool meetsRange(uint64_t begin, uint64_t end) const;
  // Whether the range meets bytes between the first and the last of a region.
  bool enclosesAny(uint64_t begin, uint64_t end) const { return enclosing_.meets(begin, end); }
  // Ranges that are kept, so that a test can see how much memory it takes.
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
  bool meets(const Rectangle& rectangle) const;
  void add(const Rectangle& rectangle);
  void splitBefore(uint64_t line);
  void joinBefore(uint64_t line);

  uint64_t stride_;
  IntervalSet enclosing_;
  std::map<uint64_t, Lines> lines_;  // by the first line; lines with the same bytes, none of them without any
};

class RegionSet {
 public:
  // Without memory for all of it, a part may have been added.
  void add(const Region& region);
  // Whether `overlap` holds for the region and one that was added.
  bool meets(const Region& region) const;
  size_t count() const;

 private:
  IntervalSet ranges_;                       // of regions of one row
  std::map<uint64_t, StridedRows> strided_;  // the others, by stride
};

}  // namespace mnk
