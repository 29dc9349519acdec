// A set of bytes as ranges that neither touch nor overlap, for bytes that are added and asked for in turn. ByteRanges
// is the smaller one for bytes that are all added first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace mnk {

class IntervalSet {
 public:
  // Without memory for a further range the set stays as it was.
  void add(uint64_t begin, uint64_t end);
  void remove(uint64_t begin, uint64_t end);

  bool meets(uint64_t begin, uint64_t end) const;
  // The first range that ends behind a byte, or end().
  auto firstBehind(uint64_t byte) const {
    auto next = ranges_.upper_bound(byte);
    if (next != ranges_.begin() && std::prev(next)->second > byte) --next;
    return next;
  }
  auto end() const { return ranges_.end(); }
  size_t count() const { return ranges_.size(); }
  bool operator==(const IntervalSet&) const = default;

 private:
  std::map<uint64_t, uint64_t> ranges_;  // ends by begins
};

}  // namespace mnk
