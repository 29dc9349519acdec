// What dispatches read and write, and whether the next one must wait for them: read after write, write after read and
// write after write, byte for byte.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "Runtime/RegionSet.hpp"
#include "Support/ByteRanges.hpp"

namespace mnk {

// Bytes that a dispatch reads or writes.
struct Touched {
  const void* space = nullptr;
  Region region;  // offset counts from the start of the space
  bool isWrite = false;
  bool isWhole = false;    // a write that reaches every byte, not some that only the kernel knows
  bool isScratch = false;  // of an encoder, which nothing else touches
};

// A dispatch, with what it moves: dispatches that differ in memory alone share all of it.
struct CountedDispatch : ReadyDispatch {
  // Bytes of one of its bindings.
  struct BindingAccess {
    size_t binding = 0;
    bool isWrite = false;
    Region region;  // offset counts from the start of the binding
  };

  // Counts again, after the dispatch has changed.
  void count();

  std::vector<BindingAccess> accesses;  // all reads before the first write
  uint64_t bytesRead = 0;
  uint64_t bytesWritten = 0;
};

// Adds what a dispatch touches, its reads before its writes: what it reads is not what it writes itself.
void addTouched(const CountedDispatch& dispatch, std::span<const BoundMemory> memory,
                std::span<const Buffer* const> scratch, std::vector<Touched>& to);

// What is read and written, of any number of spaces. A few are kept as lists, which take no memory when they are filled
// again after `clear`; more of them are indexed.
class TouchedIndex {
 public:
  // Without memory for all of it, a part may have been added.
  void add(const Touched& touched);
  // Whether a read meets something that is written, or a write meets something that is read or written.
  bool conflicts(const Touched& next) const;
  bool conflicts(std::span<const Touched> accesses) const;
  void clear() {
    fewReads_.clear();
    fewWrites_.clear();
    spaces_.clear();
  }

 private:
  static constexpr size_t kFew = 32;
  struct Space {
    RegionSet reads, writes;
  };
  struct Few {
    uint64_t begin, end;  // of the region
    const void* space;
    Region region;
  };
  static bool meetsAny(const std::vector<Few>& few, const Few& next);

  std::vector<Few> fewReads_, fewWrites_;
  std::map<const void*, Space> spaces_;
};

// Without bytes. Not by byteCount, which repeated rows may take past 64 bits.
inline bool isEmpty(const Region& region) {
  return region.rowBytes == 0 || region.rows == 0;
}

// Whether two sets of rows in one space share a byte. Exact when one of them is a plain range or both have the same
// stride; otherwise ranges that enclose each other count as sharing.
bool overlap(const Region& a, const Region& b);

// Visits the region's ranges of bytes that lie in [from, to), from the first on.
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
