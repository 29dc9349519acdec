#include "Checking/Shadow.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <tuple>

namespace mnk::host {

namespace {

uint16_t differing(const void* a, const void* b, unsigned bytes) {
  const auto* left = static_cast<const unsigned char*>(a);
  const auto* right = static_cast<const unsigned char*>(b);
  unsigned mask = 0;
  for (unsigned i = 0; i < bytes; ++i) mask |= static_cast<unsigned>(left[i] != right[i]) << i;
  return static_cast<uint16_t>(mask);
}

// Limits that end a dispatch: an infinite loop would never end, and out-of-bounds writes fill memory.
constexpr uint64_t kMaxAccesses = uint64_t(1) << 26;  // per threadgroup
constexpr uint64_t kMaxOutside = 10000;

}  // namespace

// One access to one cell.
struct Shadow::Touch {
  uint32_t number;
  Region& region;
  Block& block;
  Order& order;
  size_t offset;
  unsigned bytes;
  AccessKind kind;
  bool needsSet;  // requires initialized bytes
  uint32_t lane;
  Place place;
  uint32_t threadgroup;

  uint8_t simdgroup() const { return static_cast<uint8_t>(lane / 32); }
  uint32_t bit() const { return 1u << lane % 32; }
  uint32_t epoch() const { return order.epoch[lane / 32]; }
  const std::byte* value() const { return region.base + offset; }
  // With an earlier access.
  Sighting race(FindingKind found, const Actor& earlier, bool sameValue) const {
    Sighting sighting =
        sightingOf(found, number, static_cast<int64_t>(offset), bytes, {kind, place, threadgroup, lane});
    sighting.first = earlier;
    sighting.sameValue = sameValue;
    return sighting;
  }
};

uint32_t Shadow::addDeviceRegion(const std::byte* base, size_t bytes, const ByteRanges& unset) {
  Region region{.base = base, .bytes = bytes, .isDevice = true, .blocks = {}, .isSet = {}};
  region.blocks.resize(bytes / kBlockBytes + 1);
  if (!unset.ranges().empty()) region.isSet.assign(bytes, true);
  for (const auto& range : unset.ranges()) {
    const auto begin = region.isSet.begin() + static_cast<ptrdiff_t>(range.begin);
    std::fill(begin, begin + static_cast<ptrdiff_t>(range.end - range.begin), false);
  }
  regions_.push_back(std::move(region));
  return static_cast<uint32_t>(regions_.size() - 1);
}

void Shadow::beginThreadgroup(uint32_t index, const std::byte* arena, size_t bytes) {
  arena_.base = arena;
  arena_.bytes = bytes;
  arena_.isDevice = false;
  arena_.blocks.resize(bytes / kBlockBytes + 1);
  arena_.isSet.assign(bytes, false);
  arrays_.clear();
  threadgroup_ = index;
}

void Shadow::addThreadgroupArray(size_t offset, size_t bytes) {
  arrays_.push_back({offset, bytes});
}

void Shadow::endThreadgroup() {
  startEra(deviceOrder_);
  startEra(threadgroupOrder_);
}

uint32_t Shadow::arrayAt(size_t offset) const {
  uint32_t array = 0;
  while (array + 1 < arrays_.size() && arrays_[array + 1].offset <= offset) ++array;
  return array;
}

bool Shadow::isInArray(size_t offset, size_t bytes) const {
  return std::any_of(arrays_.begin(), arrays_.end(), [&](const Array& array) {
    return offset >= array.offset && offset + bytes <= array.offset + array.bytes;
  });
}

void Shadow::placeInArray(Sighting& sighting) const {
  if (sighting.region != kArenaRegion || arrays_.empty()) return;
  sighting.array = arrayAt(static_cast<size_t>(sighting.offset));
  sighting.offset -= static_cast<int64_t>(arrays_[sighting.array].offset);
}

void Shadow::enter(uint32_t number, size_t offset, size_t bytes, AccessKind kind, uint32_t lane, Place place) {
  Region& region = regionAt(number);
  Order& order = orderOf(region);
  bool reads = kind != AccessKind::write && kind != AccessKind::atomicStore;
  if (kind == AccessKind::atomicStore) kind = AccessKind::atomic;
  // Unset bytes beside set ones may be padding of a structure or vector.
  if (reads && !region.isSet.empty()) {
    const auto begin = region.isSet.begin() + static_cast<ptrdiff_t>(offset);
    const auto end = begin + static_cast<ptrdiff_t>(bytes);
    reads = std::find(begin, end, true) == end;
  }
  while (bytes > 0) {
    Block& block = region.blocks[offset / kBlockBytes];
    const size_t start = offset % kBlockBytes;
    const size_t part = std::min(bytes, kBlockBytes - start);
    const auto shift = static_cast<unsigned>(std::countr_zero(start | part | size_t(1) << kWidestCell));
    if (!block.cells) {
      block.cells = std::make_unique<Cell[]>(kBlockBytes >> shift);
      block.shift = shift;
    }
    if (block.shift > shift) refine(order, block, shift);
    const size_t width = size_t(1) << block.shift;
    for (size_t done = 0; done < part; done += width) {
      touchCell({number, region, block, order, offset + done, static_cast<unsigned>(width), kind, reads, lane, place,
                 threadgroup_});
    }
    offset += part;
    bytes -= part;
  }
}

// Splits the cells of a block, so that an access covers whole cells only.
void Shadow::refine(Order& order, Block& block, unsigned shift) {
  const unsigned parts = 1u << (block.shift - shift), bytes = 1u << shift;
  auto finer = std::make_unique<Cell[]>(kBlockBytes >> shift);
  for (size_t i = 0; i < kBlockBytes >> shift; ++i) {
    Cell& cell = finer[i] = block.cells[i / parts];
    const auto skip = static_cast<unsigned>(i % parts * bytes);
    const auto cut = [&](uint16_t mask) { return static_cast<uint16_t>(mask >> skip & ((1u << bytes) - 1)); };
    Past& written = cell.past[indexOf(AccessKind::write)];
    written.varied = cut(written.varied);
    if (cell.era != order.era) continue;
    uint32_t copies = 0;
    for (uint32_t at = cell.first; at != 0; at = order.entries[at - 1].next) {
      Entry part = order.entries[at - 1];
      std::memmove(part.value, part.value + skip, bytes);
      part.offset += skip;
      part.varied = cut(part.varied);
      part.allVaried = cut(part.allVaried);
      part.unset = cut(part.unset);
      part.next = copies;
      order.entries.push_back(part);
      copies = static_cast<uint32_t>(order.entries.size());
    }
    cell.first = copies;
  }
  for (size_t i = 0; i < kBlockBytes >> block.shift; ++i) {  // the originals are no longer used
    if (block.cells[i].era != order.era) continue;
    for (uint32_t at = block.cells[i].first; at != 0; at = order.entries[at - 1].next) order.entries[at - 1].unset = 0;
  }
  block.cells = std::move(finer);
  block.shift = shift;
}

void Shadow::touchCell(const Touch& touch) {
  Cell& cell = touch.block.cells[touch.offset % kBlockBytes >> touch.block.shift];
  if (cell.era != touch.order.era) {
    cell.era = touch.order.era;
    cell.first = 0;
  }
  compareWithThreadgroup(touch, cell);
  if (touch.region.isDevice) compareWithGrid(touch, cell);
}

void Shadow::compareWithThreadgroup(const Touch& touch, Cell& cell) {
  std::vector<Entry>& entries = touch.order.entries;
  const uint32_t bit = touch.bit(), epoch = touch.epoch();
  uint32_t mine = 0;
  bool raced = false;
  for (uint32_t at = cell.first; at != 0; at = entries[at - 1].next) {
    Entry& entry = entries[at - 1];
    const bool bothWrite = entry.kind == AccessKind::write && touch.kind == AccessKind::write;
    const bool sameSimdgroup = entry.simdgroup == touch.simdgroup();
    const uint16_t differ = bothWrite ? static_cast<uint16_t>((sameSimdgroup ? entry.varied : entry.allVaried) |
                                                              differing(entry.value, touch.value(), touch.bytes))
                                      : uint16_t(0);
    const uint32_t others = !sameSimdgroup ? entry.allLanes : entry.epoch == epoch ? entry.lanes & ~bit : 0;
    if (others != 0 && conflict(entry.kind, touch.kind)) {
      const auto lane = static_cast<uint32_t>(entry.simdgroup * 32 + std::countr_zero(others));
      Sighting sighting = touch.race(sameSimdgroup ? FindingKind::raceInSimdgroup : FindingKind::raceInThreadgroup,
                                     {entry.kind, entry.place, threadgroup_, lane}, bothWrite && differ == 0);
      placeInArray(sighting);
      findings_.note(sighting);
      entry.raced = raced = true;
    }
    const bool canJoin = differ == 0 || entry.allLanes == bit || entry.epoch != epoch;
    if (sameSimdgroup && entry.place == touch.place && entry.kind == touch.kind && canJoin) mine = at;
  }
  if (mine == 0) {
    Entry entry;
    entry.next = cell.first;
    entry.place = touch.place;
    entry.epoch = epoch;
    entry.region = touch.number;
    entry.offset = touch.offset;
    entry.simdgroup = touch.simdgroup();
    entry.kind = touch.kind;
    if (touch.kind == AccessKind::write) std::memcpy(entry.value, touch.value(), touch.bytes);
    entries.push_back(entry);
    mine = cell.first = static_cast<uint32_t>(entries.size());
  }
  Entry& entry = entries[mine - 1];
  if (touch.kind == AccessKind::write) {
    const uint16_t differ = differing(entry.value, touch.value(), touch.bytes);
    entry.varied = entry.epoch == epoch ? entry.varied | differ : 0;
    entry.allVaried |= differ;
    std::memcpy(entry.value, touch.value(), touch.bytes);
  }
  if (entry.epoch != epoch) {
    entry.epoch = epoch;
    entry.lanes = 0;
  }
  entry.lanes |= bit;
  entry.allLanes |= bit;
  entry.raced |= raced;
  if (!touch.region.isSet.empty()) noteUnset(touch, entry);
}

void Shadow::noteUnset(const Touch& touch, Entry& entry) {
  for (unsigned i = 0; i < touch.bytes; ++i) {
    if (touch.needsSet && !touch.region.isSet[touch.offset + i]) {
      if (entry.unset == 0 || touch.lane < entry.reader) entry.reader = touch.lane;
      entry.unset |= static_cast<uint16_t>(1u << i);
    }
    if (writes(touch.kind)) touch.region.isSet[touch.offset + i] = true;
  }
}

void Shadow::compareWithGrid(const Touch& touch, Cell& cell) {
  uint16_t differ = 0;
  if (touch.kind == AccessKind::write) {
    Past& written = cell.past[indexOf(AccessKind::write)];
    if (!touch.block.firstWritten) touch.block.firstWritten = std::make_unique<unsigned char[]>(kBlockBytes);
    unsigned char* first = &touch.block.firstWritten[touch.offset % kBlockBytes];
    if (written.threadgroup == 0) std::memcpy(first, touch.value(), touch.bytes);
    differ = written.varied | differing(first, touch.value(), touch.bytes);
  }
  for (const AccessKind kind : kAccessKinds) {
    const Past& past = cell.past[indexOf(kind)];
    if (past.threadgroup == 0 || past.threadgroup == threadgroup_ + 1 || !conflict(kind, touch.kind)) continue;
    const bool bothWrite = kind == AccessKind::write && touch.kind == AccessKind::write;
    findings_.note(touch.race(FindingKind::raceInGrid, {kind, past.place, past.threadgroup - 1, past.lane},
                              bothWrite && differ == 0));
  }
  Past& past = cell.past[indexOf(touch.kind)];
  if (past.threadgroup != 0 && past.threadgroup != threadgroup_ + 1) return;
  past.varied = differ;
  if (past.threadgroup == 0 || touch.lane < past.lane) {
    past.threadgroup = threadgroup_ + 1;
    past.place = touch.place;
    past.lane = touch.lane;
  }
}

// Orders all accesses of the threadgroup so far before those that follow.
void Shadow::startEra(Order& order) {
  for (const Entry& entry : order.entries) {
    if (entry.unset == 0 || entry.raced) continue;  // a race was reported instead: the value depends on the order
    const int64_t offset = static_cast<int64_t>(entry.offset) + std::countr_zero(entry.unset);
    Sighting sighting = sightingOf(FindingKind::uninitialized, entry.region, offset, 1,
                                   {entry.kind, entry.place, threadgroup_, entry.reader});
    placeInArray(sighting);
    findings_.note(sighting);
  }
  order.entries.clear();
  ++order.era;
}

void Shadow::simdgroupFence(uint32_t simdgroup, uint32_t memory) {
  if (memory & kOrdersDevice) ++deviceOrder_.epoch[simdgroup];
  if (memory & kOrdersThreadgroup) ++threadgroupOrder_.epoch[simdgroup];
}

void Shadow::threadgroupFence(uint32_t memory) {
  if (memory & kOrdersDevice) startEra(deviceOrder_);
  if (memory & kOrdersThreadgroup) startEra(threadgroupOrder_);
}

ByteRanges Shadow::touched(uint32_t region, AccessKind kind) const {
  ByteRanges ranges;
  const std::vector<Block>& blocks = regions_[region].blocks;
  for (size_t number = 0; number < blocks.size(); ++number) {
    const Block& block = blocks[number];
    if (!block.cells) continue;
    const size_t width = size_t(1) << block.shift;
    for (size_t i = 0; i < kBlockBytes >> block.shift; ++i) {
      const size_t begin = number * kBlockBytes + i * width;
      if (block.cells[i].past[indexOf(kind)].threadgroup != 0) ranges.add(begin, begin + width);
    }
  }
  return ranges;
}

Actor Shadow::firstToucher(uint32_t region, size_t offset, AccessKind kind) const {
  const Block& block = regions_[region].blocks[offset / kBlockBytes];
  const Past& past = block.cells[offset % kBlockBytes >> block.shift].past[indexOf(kind)];
  return {kind, past.place, past.threadgroup - 1, past.lane};
}

bool ConstantData::holds(const void* address) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) / 4096;
  if (page == 0) return false;
  if (known_[page % known_.size()] == page) return true;
  Dl_info info{};
  if (dladdr(address, &info) == 0) return false;
  known_[page % known_.size()] = page;
  return true;
}

Observer::Observer(const MarginCopies& memory, const ByteRanges& outputs) : memory_(memory), shadow_(findings_) {
  for (const auto& copy : memory.copies()) {
    const uint64_t begin = reinterpret_cast<uintptr_t>(copy.original), end = begin + copy.bytes;
    ByteRanges unset;
    for (const auto& range : outputs.ranges()) {
      const uint64_t low = std::max(range.begin, begin), high = std::min(range.end, end);
      if (low < high) unset.add(low - begin, high - begin);
    }
    shadow_.addDeviceRegion(copy.base, copy.bytes, unset);
  }
}

bool Observer::access(AccessKind kind, const std::byte* address, size_t bytes, uint32_t lane, Place place) {
  enterPending();
  if (++accesses_ > kMaxAccesses) {
    noteMistake({"", 0, place}, lane, "a threadgroup has not ended after 2^26 accesses");
    return false;
  }
  const Actor actor{kind, place, shadow_.threadgroup(), lane};
  Store store{
      .isPending = kind == AccessKind::write, .region = 0, .offset = 0, .bytes = bytes, .lane = lane, .place = place};
  if (address >= arena_ && address < arena_ + arenaBytes_) {
    store.region = kArenaRegion;
    store.offset = static_cast<size_t>(address - arena_);
    if (!shadow_.isInArray(store.offset, bytes)) {
      return noteOutside(kArenaRegion, static_cast<int64_t>(store.offset), bytes, actor);
    }
  } else if (const auto copy = memory_.find(address)) {
    const auto& region = memory_.copies()[*copy];
    const int64_t offset = address - region.base;
    store.region = *copy;
    store.offset = static_cast<size_t>(offset);
    if (offset < 0 || store.offset + bytes > region.bytes) {
      return noteOutside(*copy, offset, bytes, actor);
    }
  } else {
    if (kind == AccessKind::read && constants_.holds(address)) return true;
    noteOutside(kNoRegion, 0, bytes, actor);
    return false;
  }
  if (store.isPending) {
    pending_ = store;
  } else {
    shadow_.enter(store.region, store.offset, store.bytes, kind, lane, place);
  }
  return true;
}

void Observer::enterPending() {
  if (!pending_.isPending) return;
  pending_.isPending = false;
  shadow_.enter(pending_.region, pending_.offset, pending_.bytes, AccessKind::write, pending_.lane, pending_.place);
}

bool Observer::noteOutside(uint32_t region, int64_t offset, size_t bytes, const Actor& actor) {
  Sighting sighting = sightingOf(FindingKind::outOfBounds, region, offset, static_cast<uint32_t>(bytes), actor);
  shadow_.placeInArray(sighting);
  findings_.note(sighting);
  return ++outside_ < kMaxOutside;
}

void Observer::noteMistake(TextPlace place, uint32_t lane, const char* text) {
  const Mistake mistake{text, {AccessKind::read, 0, shadow_.threadgroup(), lane}};
  const auto [at, isNew] = mistakes_.try_emplace(std::move(place), mistake);
  const auto rank = [](const Mistake& m) { return std::tuple(m.actor.threadgroup, m.actor.lane); };
  if (!isNew && rank(mistake) < rank(at->second)) at->second = mistake;
}

template <typename Body>
bool Observer::observe(void* state, Body body) {
  auto& self = *static_cast<Observer*>(state);
  try {
    if (!self.ranOutOfMemory_) return body(self);
  } catch (const std::exception&) {
    self.ranOutOfMemory_ = true;
  }
  return false;
}

Watcher Observer::watcher() {
  Watcher watcher{};
  watcher.state = this;
  watcher.access = [](void* state, AccessKind kind, const void* address, size_t bytes, uint32_t lane,
                      const void* place) {
    return observe(state, [&](Observer& self) {
      return self.access(kind, static_cast<const std::byte*>(address), bytes, lane, reinterpret_cast<Place>(place));
    });
  };
  watcher.beginThreadgroup = [](void* state, uint64_t index, void* arena, size_t bytes) {
    observe(state, [&](Observer& self) {
      self.arena_ = static_cast<const std::byte*>(arena);
      self.arenaBytes_ = bytes;
      self.accesses_ = 0;
      self.shadow_.beginThreadgroup(static_cast<uint32_t>(index), self.arena_, bytes);
      return true;
    });
  };
  watcher.endThreadgroup = [](void* state) {
    observe(state, [](Observer& self) {
      self.enterPending();
      self.shadow_.endThreadgroup();
      return true;
    });
  };
  watcher.addThreadgroupArray = [](void* state, const void* address, size_t bytes) {
    observe(state, [&](Observer& self) {
      const auto offset = static_cast<const std::byte*>(address) - self.arena_;
      self.shadow_.addThreadgroupArray(static_cast<size_t>(offset), bytes);
      return true;
    });
  };
  watcher.simdgroupFence = [](void* state, uint32_t simdgroup, uint32_t memory) {
    observe(state, [&](Observer& self) {
      self.enterPending();
      self.shadow_.simdgroupFence(simdgroup, memory);
      return true;
    });
  };
  watcher.threadgroupFence = [](void* state, uint32_t memory) {
    observe(state, [&](Observer& self) {
      self.enterPending();
      self.shadow_.threadgroupFence(memory);
      return true;
    });
  };
  watcher.mistake = [](void* state, const char* file, uint32_t line, const void* place, uint32_t lane,
                       const char* text) {
    observe(state, [&](Observer& self) {
      self.noteMistake({file ? fileName(file) : "", line, reinterpret_cast<Place>(place)}, lane, text);
      return true;
    });
  };
  return watcher;
}

}  // namespace mnk::host
