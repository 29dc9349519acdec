#include "Runtime/HazardTracker.hpp"

#include <algorithm>

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

}  // namespace mnk
