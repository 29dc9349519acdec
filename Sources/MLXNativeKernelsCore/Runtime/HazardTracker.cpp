#include "Runtime/HazardTracker.hpp"

namespace mnk {

namespace {

// Whether any row of `rows` overlaps [begin, end).
bool overlapsRange(const Region& rows, uint64_t begin, uint64_t end) {
  if (rows.rowStride == 0 || end <= rows.offset) return begin < rows.offset + rows.rowBytes && rows.offset < end;
  // Rows before this index end at or before `begin`.
  const uint64_t first =
      begin < rows.offset + rows.rowBytes ? 0 : (begin - rows.offset - rows.rowBytes) / rows.rowStride + 1;
  return first < rows.rows && rows.offset + first * rows.rowStride < end;
}

// Both regions have the same stride, so only the distance between their rows matters.
bool overlapAtSameStride(const Region& a, const Region& b) {
  const auto stride = static_cast<__int128>(a.rowStride);
  const __int128 distance = static_cast<__int128>(b.offset) - static_cast<__int128>(a.offset);
  // Row i of a overlaps row j of b when distance - a.rowBytes < (i - j) * stride < distance + b.rowBytes.
  const auto floorDivide = [](__int128 x, __int128 y) { return x / y - (x % y < 0 ? 1 : 0); };
  const __int128 low = floorDivide(distance - static_cast<__int128>(a.rowBytes), stride) + 1;
  const __int128 high = -floorDivide(-(distance + static_cast<__int128>(b.rowBytes)), stride) - 1;
  return std::max(low, -(static_cast<__int128>(b.rows) - 1)) <= std::min(high, static_cast<__int128>(a.rows) - 1);
}

}  // namespace

bool isEmpty(const Region& region) {
  return region.rowBytes == 0 || region.rows == 0;
}

bool overlap(const Region& a, const Region& b) {
  if (isEmpty(a) || isEmpty(b)) return false;
  if (a.end() <= b.offset || b.end() <= a.offset) return false;
  if (a.rows == 1) return overlapsRange(b, a.offset, a.offset + a.rowBytes);
  if (b.rows == 1) return overlapsRange(a, b.offset, b.offset + b.rowBytes);
  if (a.rowStride == b.rowStride && a.rowStride != 0) return overlapAtSameStride(a, b);
  return true;
}

void addBytes(const Region& region, ByteRanges& bytes, uint64_t from, uint64_t to) {
  forEachRange(region, from, to, [&](uint64_t begin, uint64_t end) { bytes.add(begin, end); });
}

void CountedDispatch::count() {
  bytesRead = dispatch.countedBytesRead();
  bytesWritten = dispatch.countedBytesWritten();
  accesses.clear();
  for (const bool isWrite : {false, true}) {
    for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
      for (const Region& region : isWrite ? dispatch.buffers[i].writes : dispatch.buffers[i].reads) {
        if (!isEmpty(region)) accesses.push_back({i, isWrite, region});
      }
    }
  }
}

void addTouched(const CountedDispatch& dispatch, std::span<const BoundMemory> memory,
                std::span<const Buffer* const> scratch, std::vector<Touched>& to) {
  const bool areWritesWhole = !dispatch.dispatch.bytesWritten;
  const BoundMemory* bound = nullptr;
  MemoryRange range;
  bool isScratch = false;
  for (const auto& [binding, isWrite, region] : dispatch.accesses) {
    if (bound != &memory[binding]) {
      bound = &memory[binding];
      range = bound->buffer->range();
      isScratch = std::find(scratch.begin(), scratch.end(), bound->buffer.get()) != scratch.end();
    }
    Touched& next =
        to.emplace_back(range.space, region, isWrite, isWrite && areWritesWhole, isScratch, bound->buffer->isOrdered());
    next.region.offset += range.begin + bound->offset;
  }
}

void TouchedIndex::clear() {
  fewReads_.clear();
  fewWrites_.clear();
  spaces_.clear();
}

void TouchedIndex::add(const Touched& touched) {
  if (fewReads_.empty() && fewWrites_.empty()) {
    fewReads_.reserve(kFew);
    fewWrites_.reserve(kFew);
  }
  const Region& region = touched.region;
  if (fewReads_.size() + fewWrites_.size() < kFew) {
    (touched.isWrite ? fewWrites_ : fewReads_).push_back({region.offset, region.end(), touched.space, region});
    return;
  }
  for (const IndexedTouch& each : fewReads_) spaces_[each.space].reads.add(each.region);
  for (const IndexedTouch& each : fewWrites_) spaces_[each.space].writes.add(each.region);
  Space& space = spaces_[touched.space];
  (touched.isWrite ? space.writes : space.reads).add(region);
  fewReads_.clear();
  fewWrites_.clear();
}

bool TouchedIndex::overlapsAny(const std::vector<IndexedTouch>& few, const IndexedTouch& next) {
  return std::any_of(few.begin(), few.end(), [&](const IndexedTouch& each) {
    return each.begin < next.end && next.begin < each.end && each.space == next.space &&
           overlap(each.region, next.region);
  });
}

bool TouchedIndex::conflicts(const Touched& next) const {
  const IndexedTouch touch{next.region.offset, next.region.end(), next.space, next.region};
  if (overlapsAny(fewWrites_, touch) || (next.isWrite && overlapsAny(fewReads_, touch))) return true;
  if (spaces_.empty()) return false;
  const auto space = spaces_.find(next.space);
  if (space == spaces_.end()) return false;
  return space->second.writes.overlaps(next.region) || (next.isWrite && space->second.reads.overlaps(next.region));
}

bool TouchedIndex::conflicts(std::span<const Touched> accesses) const {
  return std::any_of(accesses.begin(), accesses.end(), [&](const Touched& next) { return conflicts(next); });
}

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

// Alternates between skipping to the next row and to the next range, so that the number of steps is at most that of the
// rows, or of the ranges between the first row and the last.
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
