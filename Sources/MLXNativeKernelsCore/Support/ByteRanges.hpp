// A set of bytes as sorted, disjoint ranges that are not adjacent.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace mnk {

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

}  // namespace mnk
