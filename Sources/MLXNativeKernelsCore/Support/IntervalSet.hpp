// A set of bytes as disjoint ranges that are not adjacent, for interleaved additions and queries. ByteRanges is smaller
// but needs all additions first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace mnk {

class IntervalSet {
 public:
  // If there is no memory for another range, the set is unchanged.
  void add(uint64_t begin, uint64_t end);
  void remove(uint64_t begin, uint64_t end);

  bool overlaps(uint64_t begin, uint64_t end) const;
  // The first range that ends after a byte, or end().
  auto firstBehind(uint64_t byte) const {
    auto next = ranges_.upper_bound(byte);
    if (next != ranges_.begin() && std::prev(next)->second > byte) --next;
    return next;
  }
  auto end() const { return ranges_.end(); }
  size_t count() const { return ranges_.size(); }
  bool operator==(const IntervalSet&) const = default;

 private:
  std::map<uint64_t, uint64_t> ranges_;  // begin to end
};

}  // namespace mnk
