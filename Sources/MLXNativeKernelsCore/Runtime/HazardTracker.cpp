#include "Runtime/HazardTracker.hpp"

#include <algorithm>

namespace mnk {

namespace {

// Whether some row of `rows` meets [begin, end).
bool meetsRange(const Region& rows, uint64_t begin, uint64_t end) {
  if (rows.rowStride == 0 || end <= rows.offset) return begin < rows.offset + rows.rowBytes && rows.offset < end;
  // Rows before this index end at or before `begin`.
  const uint64_t first =
      begin < rows.offset + rows.rowBytes ? 0 : (begin - rows.offset - rows.rowBytes) / rows.rowStride + 1;
  return first < rows.rows && rows.offset + first * rows.rowStride < end;
}

// Both have this stride, so only the distance between a row of one and a row of the other counts.
bool sameStrideMeets(const Region& a, const Region& b) {
  const auto stride = static_cast<__int128>(a.rowStride);
  const __int128 distance = static_cast<__int128>(b.offset) - static_cast<__int128>(a.offset);
  // Row i of a meets row j of b when distance - a.rowBytes < (i - j) * stride < distance + b.rowBytes.
  const auto floorDivide = [](__int128 x, __int128 y) { return x / y - (x % y < 0 ? 1 : 0); };
  const __int128 low = floorDivide(distance - static_cast<__int128>(a.rowBytes), stride) + 1;
  const __int128 high = -floorDivide(-(distance + static_cast<__int128>(b.rowBytes)), stride) - 1;
  return std::max(low, -(static_cast<__int128>(b.rows) - 1)) <= std::min(high, static_cast<__int128>(a.rows) - 1);
}

}  // namespace

bool overlap(const Region& a, const Region& b) {
  if (isEmpty(a) || isEmpty(b)) return false;
  if (a.end() <= b.offset || b.end() <= a.offset) return false;
  if (a.rows == 1) return meetsRange(b, a.offset, a.offset + a.rowBytes);
  if (b.rows == 1) return meetsRange(a, b.offset, b.offset + b.rowBytes);
  if (a.rowStride == b.rowStride && a.rowStride != 0) return sameStrideMeets(a, b);
  return true;
}

void addBytes(const Region& region, ByteRanges& bytes, uint64_t from, uint64_t to) {
  forEachRange(region, from, to, [&](uint64_t begin, uint64_t end) { bytes.add(begin, end); });
}

// All reads before the first write: what a dispatch reads is not what it writes itself.
void addTouched(const Dispatch& dispatch, std::span<const BoundMemory> memory, std::span<const Buffer* const> scratch,
                std::vector<Touched>& to) {
  for (const bool isWrite : {false, true}) {
    for (size_t i = 0; i < memory.size(); ++i) {
      const Binding& binding = dispatch.buffers[i];
      const auto& regions = isWrite ? binding.writes : binding.reads;
      if (regions.empty()) continue;
      const Buffer* const buffer = memory[i].buffer.get();
      const MemoryRange range = buffer->range();
      const Touched of{.space = range.space,
                       .region = {},
                       .isWrite = isWrite,
                       .isWhole = isWrite && !dispatch.bytesWritten,
                       .isScratch = std::find(scratch.begin(), scratch.end(), buffer) != scratch.end()};
      for (const Region& region : regions) {
        if (isEmpty(region)) continue;
        Touched& next = to.emplace_back(of);
        next.region = region;
        next.region.offset += range.begin + memory[i].offset;
      }
    }
  }
}

void TouchedIndex::add(const Touched& touched) {
  if (few_.empty()) few_.reserve(kFew + 1);
  few_.push_back(touched);
  if (few_.size() <= kFew) return;
  for (const Touched& each : few_) {
    Space& space = spaces_[each.space];
    (each.isWrite ? space.writes : space.reads).add(each.region);
  }
  few_.clear();
}

bool TouchedIndex::conflicts(const Touched& next) const {
  const uint64_t begin = next.region.offset, end = next.region.end();
  const bool meetsFew = std::any_of(few_.begin(), few_.end(), [&](const Touched& each) {
    const bool mayMeet = each.region.offset < end && begin < each.region.end() && each.space == next.space;
    return mayMeet && (each.isWrite || next.isWrite) && overlap(each.region, next.region);
  });
  if (meetsFew) return true;
  if (spaces_.empty()) return false;
  const auto space = spaces_.find(next.space);
  if (space == spaces_.end()) return false;
  return space->second.writes.meets(next.region) || (next.isWrite && space->second.reads.meets(next.region));
}

bool TouchedIndex::conflicts(std::span<const Touched> accesses) const {
  return std::any_of(accesses.begin(), accesses.end(), [&](const Touched& next) { return conflicts(next); });
}

}  // namespace mnk
