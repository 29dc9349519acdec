#include "Runtime/RegionSet.hpp"

#include <algorithm>

#include "Runtime/HazardTracker.hpp"

namespace mnk {

// Visits rectangles until the visitor returns true.
template <typename Visit>
bool StridedRows::anyRectangle(uint64_t begin, uint64_t end, Visit visit) const {
  const uint64_t first = begin / stride_, last = (end - 1) / stride_;
  const uint64_t from = begin % stride_, to = (end - 1) % stride_ + 1;
  if (first == last) return visit(Rectangle{first, last, from, to});
  return visit(Rectangle{first, first, from, stride_}) || visit(Rectangle{last, last, 0, to}) ||
         (last - first > 1 && visit(Rectangle{first + 1, last - 1, 0, stride_}));
}

template <typename Visit>
bool StridedRows::anyRectangle(const Region& rows, Visit visit) const {
  if (rows.rowBytes >= stride_) return anyRectangle(rows.offset, rows.end(), visit);
  const uint64_t first = rows.offset / stride_, last = first + (rows.rows - 1), begin = rows.offset % stride_;
  const uint64_t left = stride_ - begin;  // in the first line
  if (rows.rowBytes <= left) return visit(Rectangle{first, last, begin, begin + rows.rowBytes});
  return visit(Rectangle{first, last, begin, stride_}) ||
         visit(Rectangle{first + 1, last + 1, 0, rows.rowBytes - left});
}

bool StridedRows::overlapsRows(const Region& rows) const {
  return enclosesAny(rows.offset, rows.end()) &&
         anyRectangle(rows, [&](const Rectangle& rectangle) { return overlaps(rectangle); });
}

bool StridedRows::overlapsRange(uint64_t begin, uint64_t end) const {
  if (!enclosesAny(begin, end)) return false;
  // Repeated rows have no gaps.
  return stride_ == 0 || anyRectangle(begin, end, [&](const Rectangle& rectangle) { return overlaps(rectangle); });
}

bool StridedRows::overlaps(const Rectangle& rectangle) const {
  auto next = lines_.upper_bound(rectangle.firstLine);
  if (next != lines_.begin() && std::prev(next)->second.last >= rectangle.firstLine) --next;
  for (; next != lines_.end() && next->first <= rectangle.lastLine; ++next) {
    if (next->second.bytes.overlaps(rectangle.begin, rectangle.end)) return true;
  }
  return false;
}

void StridedRows::add(const Region& rows) {
  enclosing_.add(rows.offset, rows.end());
  if (stride_ == 0) return;
  anyRectangle(rows, [&](const Rectangle& rectangle) {
    add(rectangle);
    return false;
  });
}

void StridedRows::add(const Rectangle& rectangle) {
  splitBefore(rectangle.firstLine);
  if (rectangle.lastLine != UINT64_MAX) splitBefore(rectangle.lastLine + 1);
  auto next = lines_.lower_bound(rectangle.firstLine);
  for (uint64_t line = rectangle.firstLine;; ++next) {
    const bool isGap = next == lines_.end() || next->first > line;
    if (isGap) {
      Lines gap{.last = rectangle.lastLine, .bytes = {}};
      if (next != lines_.end()) gap.last = std::min(gap.last, next->first - 1);
      gap.bytes.add(rectangle.begin, rectangle.end);
      next = lines_.emplace_hint(next, line, std::move(gap));
    } else {
      next->second.bytes.add(rectangle.begin, rectangle.end);
    }
    if (next->second.last == rectangle.lastLine) break;
    line = next->second.last + 1;
  }
  if (rectangle.lastLine != UINT64_MAX) joinBefore(rectangle.lastLine + 1);
  joinBefore(rectangle.firstLine);
}

// Splits the entry that contains `line`, so that an entry begins at it.
void StridedRows::splitBefore(uint64_t line) {
  auto found = lines_.lower_bound(line);
  if (found == lines_.begin() || (found != lines_.end() && found->first == line)) return;
  Lines& before = std::prev(found)->second;
  if (before.last < line) return;
  lines_.emplace_hint(found, line, before);
  before.last = line - 1;
}

// Merges the entries before and at `line` if their bytes are equal, for example for sequences at the same position.
// Long lists are not compared and stay separate.
void StridedRows::joinBefore(uint64_t line) {
  constexpr size_t kFew = 4;
  const auto found = lines_.find(line);
  if (found == lines_.end() || found == lines_.begin()) return;
  Lines& before = std::prev(found)->second;
  if (before.last + 1 != line || before.bytes.count() > kFew || before.bytes != found->second.bytes) return;
  before.last = found->second.last;
  lines_.erase(found);
}

size_t StridedRows::count() const {
  size_t count = enclosing_.count();
  for (const auto& [first, lines] : lines_) count += lines.bytes.count();
  return count;
}

void RegionSet::add(const Region& region) {
  if (isEmpty(region)) return;
  if (region.rows == 1) return ranges_.add(region.offset, region.end());
  strided_.try_emplace(region.rowStride, region.rowStride).first->second.add(region);
}

// Alternates between skipping to the next row and to the next range, so that it takes at most as many steps as there
// are rows, or ranges between the first row and the last.
bool overlapsAny(const IntervalSet& ranges, const Region& rows) {
  if (rows.rowStride <= rows.rowBytes) return ranges.overlaps(rows.offset, rows.end());
  for (uint64_t row = 0; row < rows.rows;) {
    const uint64_t begin = rows.offset + row * rows.rowStride;
    const auto next = ranges.firstBehind(begin);
    if (next == ranges.end()) return false;
    if (next->first < begin + rows.rowBytes) return true;
    row = (next->first - rows.offset - rows.rowBytes) / rows.rowStride + 1;
  }
  return false;
}

bool RegionSet::overlaps(const Region& region) const {
  if (isEmpty(region)) return false;
  if (overlapsAny(ranges_, region)) return true;
  return std::any_of(strided_.begin(), strided_.end(), [&](const auto& entry) {
    const auto& [stride, rows] = entry;
    if (region.rows == 1) return rows.overlapsRange(region.offset, region.end());
    if (stride == region.rowStride && stride != 0) return rows.overlapsRows(region);
    return rows.enclosesAny(region.offset, region.end());
  });
}

size_t RegionSet::count() const {
  size_t count = ranges_.count();
  for (const auto& [stride, rows] : strided_) count += rows.count();
  return count;
}

}  // namespace mnk
