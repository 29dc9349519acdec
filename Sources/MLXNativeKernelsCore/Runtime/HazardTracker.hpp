// Tracks what dispatches read and write, and whether the next one needs a barrier: RAW, WAR and WAW hazards, byte for
// byte.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
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

// Regions of one memory space, indexed so that an overlap query takes time proportional to the rows of the queried
// region and the logarithm of the number of regions.
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

// Bytes that a dispatch reads or writes.
struct Touched {
  const void* space = nullptr;
  Region region;  // offset counts from the start of the space
  bool isWrite = false;
  bool isWhole = false;    // a write that covers every byte, as opposed to an unknown subset
  bool isScratch = false;  // an encoder's scratch memory, which no other work touches
  bool isOrdered = false;  // Buffer::isOrdered
};

// A dispatch with its byte accesses. Dispatches that differ only in memory share them.
struct CountedDispatch : ReadyDispatch {
  // Bytes of one of its bindings.
  struct BindingAccess {
    size_t binding = 0;
    bool isWrite = false;
    Region region;  // offset counts from the start of the binding
  };

  // Recomputes the accesses and byte counts after the dispatch has been patched.
  void count();

  std::vector<BindingAccess> accesses;  // all reads before the first write
  uint64_t bytesRead = 0;
  uint64_t bytesWritten = 0;
};

// Adds what a dispatch touches, reads before writes, so that a dispatch does not appear to read its own writes.
void addTouched(const CountedDispatch& dispatch, std::span<const BoundMemory> memory,
                std::span<const Buffer* const> scratch, std::vector<Touched>& to);

// Reads and writes of any number of memory spaces. A few are kept in lists, which reuse their memory after `clear`;
// more are indexed.
class TouchedIndex {
 public:
  // If memory runs out, part of the access may have been added.
  void add(const Touched& touched);
  // Whether a read overlaps a write, or a write overlaps any access.
  bool conflicts(const Touched& next) const;
  bool conflicts(std::span<const Touched> accesses) const;
  void clear();

 private:
  static constexpr size_t kFew = 32;
  struct Space {
    RegionSet reads, writes;
  };
  struct IndexedTouch {
    uint64_t begin, end;  // of the region
    const void* space;
    Region region;
  };
  static bool overlapsAny(const std::vector<IndexedTouch>& few, const IndexedTouch& next);

  std::vector<IndexedTouch> fewReads_, fewWrites_;
  std::map<const void*, Space> spaces_;
};

// Whether the region is empty. Does not use byteCount, which can overflow for repeated rows.
bool isEmpty(const Region& region);

// Whether two regions in one space share a byte. Exact if one is a plain range or both have the same stride; otherwise
// overlapping extents count as sharing.
bool overlap(const Region& a, const Region& b);

// Visits the byte ranges of the region within [from, to), in ascending order.
template <typename Visit>
void forEachRange(const Region& region, uint64_t from, uint64_t to, Visit visit) {
  if (isEmpty(region)) return;
  const auto visitWithin = [&](uint64_t begin, uint64_t end) {
    if (std::max(begin, from) < std::min(end, to)) visit(std::max(begin, from), std::min(end, to));
  };
  if (region.rowStride <= region.rowBytes) return visitWithin(region.offset, region.end());
  uint64_t row = from <= region.offset ? 0 : (from - region.offset) / region.rowStride;
  for (; row < region.rows; ++row) {
    const uint64_t begin = region.offset + row * region.rowStride;
    if (begin >= to) return;
    visitWithin(begin, begin + region.rowBytes);
  }
}
// Adds the region's bytes that lie in [from, to).
void addBytes(const Region& region, ByteRanges& bytes, uint64_t from = 0, uint64_t to = UINT64_MAX);

}  // namespace mnk
