#include "Support/IntervalSet.hpp"

#include <algorithm>

namespace mnk {

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
