#include "Support/Bytes.hpp"

#include <algorithm>

namespace mnk {

void ByteRanges::add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  if (sorted_ && !ranges_.empty() && ranges_.back().end == begin) {
    ranges_.back().end = end;
    return;
  }
  sorted_ = sorted_ && (ranges_.empty() || ranges_.back().end < begin);
  ranges_.push_back({begin, end});
}

const std::vector<ByteRanges::Range>& ByteRanges::ranges() const {
  if (sorted_) return ranges_;
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].begin <= ranges_[last].end) {
      ranges_[last].end = std::max(ranges_[last].end, ranges_[i].end);
    } else {
      ranges_[++last] = ranges_[i];
    }
  }
  ranges_.resize(last + 1);
  sorted_ = true;
  return ranges_;
}

ByteRanges ByteRanges::without(const ByteRanges& other) const {
  ByteRanges left;
  auto hole = other.ranges().begin();
  for (Range range : ranges()) {
    while (hole != other.ranges().end() && hole->end <= range.begin) ++hole;
    for (auto next = hole; next != other.ranges().end() && next->begin < range.end; ++next) {
      left.add(range.begin, next->begin);
      range.begin = std::max(range.begin, next->end);
    }
    left.add(range.begin, range.end);
  }
  return left;
}

std::optional<uint64_t> ByteRanges::firstOutside(const ByteRanges& other) const {
  const ByteRanges left = without(other);
  if (left.ranges().empty()) return std::nullopt;
  return left.ranges().front().begin;
}

std::optional<uint64_t> ByteRanges::firstShared(const ByteRanges& other) const {
  auto mine = ranges().begin();
  auto theirs = other.ranges().begin();
  while (mine != ranges().end() && theirs != other.ranges().end()) {
    const uint64_t begin = std::max(mine->begin, theirs->begin);
    if (begin < std::min(mine->end, theirs->end)) return begin;
    mine->end < theirs->end ? ++mine : ++theirs;
  }
  return std::nullopt;
}

void IntervalSet::add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto next = ranges_.upper_bound(begin);
  auto range = next;
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --range;
  } else {
    range = ranges_.emplace_hint(next, begin, end);
  }
  range->second = std::max(range->second, end);
  while (next != ranges_.end() && next->first <= range->second) {
    range->second = std::max(range->second, next->second);
    next = ranges_.erase(next);
  }
}

void IntervalSet::remove(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second > begin) --next;
  while (next != ranges_.end() && next->first < end) {
    if (next->second > end) ranges_.emplace(end, next->second);
    if (next->first < begin) {
      next->second = begin;
      ++next;
    } else {
      next = ranges_.erase(next);
    }
  }
}

bool IntervalSet::overlaps(uint64_t begin, uint64_t end) const {
  if (begin >= end) return false;
  const auto next = firstBehind(begin);
  return next != ranges_.end() && next->first < end;
}

}  // namespace mnk
