// Sizes and sets of bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace mnk {

// Arithmetic on untrusted sizes: empty on overflow.
inline std::optional<uint64_t> checkedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> checkedMultiply(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Whether [offset, offset + length) lies in [0, limit).
inline bool fits(uint64_t offset, uint64_t length, uint64_t limit) {
  return offset <= limit && length <= limit - offset;
}

// A set of bytes as sorted, disjoint ranges that are not adjacent.
class ByteRanges {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };

  // Ranges may come in any order and overlap. Empty ranges are ignored.
  void add(uint64_t begin, uint64_t end);

  const std::vector<Range>& ranges() const;
  // The lowest byte of this set that `other` lacks.
  std::optional<uint64_t> firstOutside(const ByteRanges& other) const;
  // The lowest byte in both sets.
  std::optional<uint64_t> firstShared(const ByteRanges& other) const;
  ByteRanges without(const ByteRanges& other) const;

 private:
  mutable std::vector<Range> ranges_;
  mutable bool sorted_ = true;
};

// A set of bytes as disjoint ranges that are not adjacent, for interleaved additions and queries. ByteRanges is smaller
// but needs all additions first.
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
