#include "Checking/Observer.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <tuple>

#include "Checking/Findings.hpp"

namespace mnk::host {

namespace {

// Limits that end a dispatch: an infinite loop would never end, and out-of-bounds writes fill memory.
constexpr uint64_t kMaxAccesses = uint64_t(1) << 26;  // per threadgroup
constexpr uint64_t kMaxOutside = 10000;

}  // namespace

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
  Sighting sighting{.kind = FindingKind::outOfBounds,
                    .region = region,
                    .offset = offset,
                    .bytes = static_cast<uint32_t>(bytes),
                    .first = actor,
                    .second = actor};
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
