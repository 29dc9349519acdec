// A set of bytes as sorted ranges that neither touch nor overlap.
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

  // In any order, with any overlap. Empty ranges are ignored.
  void add(uint64_t begin, uint64_t end);

  const std::vector<Range>& ranges() const;
  // The lowest byte of this set that `other` lacks.
  std::optional<uint64_t> firstOutside(const ByteRanges& other) const;
  // The lowest byte that both have.
  std::optional<uint64_t> firstShared(const ByteRanges& other) const;
  ByteRanges without(const ByteRanges& other) const;

 private:
  mutable std::vector<Range> ranges_;
  mutable bool sorted_ = true;
};

}  // namespace mnk
