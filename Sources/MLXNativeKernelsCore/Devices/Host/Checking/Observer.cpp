#include "Observer.hpp"

#include <dlfcn.h>

#include <tuple>

#include "Devices/Host/Checking/Places.hpp"

namespace mnk::host {

bool ConstantData::holds(const void* address) {
  const uintptr_t page = reinterpret_cast<uintptr_t>(address) / 4096;
  if (known_[page % known_.size()] == page) return true;
  Dl_info info{};
  if (dladdr(address, &info) == 0) return false;
  known_[page % known_.size()] = page;
  return true;
}

bool Observer::access(AccessKind kind, const std::byte* address, size_t bytes, uint32_t lane, Place place) {
  enterPending();
  const Actor actor{kind, place, shadow_.threadgroup(), lane};
  Store store{
      .isPending = kind == AccessKind::write, .region = 0, .offset = 0, .bytes = bytes, .lane = lane, .place = place};
  if (address >= arena_ && address < arena_ + arenaBytes_) {
    store.region = kArenaRegion;
    store.offset = static_cast<size_t>(address - arena_);
    if (!shadow_.isInArray(store.offset, bytes)) {
      noteOutside(kArenaRegion, static_cast<int64_t>(store.offset), bytes, actor);
      return true;
    }
  } else if (const auto copy = memory_.find(address)) {
    const auto& region = memory_.copies()[*copy];
    const int64_t offset = address - region.base;
    store.region = *copy;
    store.offset = static_cast<size_t>(offset);
    if (offset < 0 || store.offset + bytes > region.bytes) {
      noteOutside(*copy, offset, bytes, actor);
      return true;
    }
  } else {
    if (kind == AccessKind::read && constants_.holds(address)) return true;
    noteOutside(kNoRegion, 0, bytes, actor);
    return false;
  }
  if (store.isPending) {
    pending_ = store;
  } else {
    enter(store, kind);
  }
  return true;
}

void Observer::enter(const Store& store, AccessKind kind) {
  if (store.region == kArenaRegion) {
    shadow_.enterThreadgroup(store.offset, store.bytes, kind, store.lane, store.place);
  } else {
    shadow_.enterDevice(store.region, store.offset, store.bytes, kind, store.lane, store.place);
  }
}

void Observer::enterPending() {
  if (!pending_.isPending) return;
  pending_.isPending = false;
  enter(pending_, AccessKind::write);
}

void Observer::noteOutside(uint32_t region, int64_t offset, size_t bytes, const Actor& actor) {
  Sighting sighting{.kind = FindingKind::outOfBounds,
                    .region = region,
                    .inDeviceMemory = region != kArenaRegion,
                    .offset = offset,
                    .bytes = static_cast<uint32_t>(bytes),
                    .first = actor,
                    .second = actor};
  if (region == kArenaRegion && shadow_.hasArrays()) {
    sighting.array = shadow_.arrayAt(static_cast<size_t>(offset));
    sighting.offset -= static_cast<int64_t>(shadow_.arrayOffset(sighting.array));
  }
  findings_.note(sighting);
}

Watcher Observer::watcher() {
  Watcher watcher{};
  watcher.state = this;
  watcher.access = [](void* state, AccessKind kind, const void* address, size_t bytes, uint32_t lane,
                      const void* place) {
    return static_cast<Observer*>(state)->access(kind, static_cast<const std::byte*>(address), bytes, lane,
                                                 reinterpret_cast<Place>(place));
  };
  watcher.beginThreadgroup = [](void* state, uint64_t index, void* arena, size_t bytes) {
    auto& self = *static_cast<Observer*>(state);
    self.arena_ = static_cast<const std::byte*>(arena);
    self.arenaBytes_ = bytes;
    self.shadow_.beginThreadgroup(static_cast<uint32_t>(index), self.arena_, bytes);
  };
  watcher.endThreadgroup = [](void* state) {
    auto& self = *static_cast<Observer*>(state);
    self.enterPending();
    self.shadow_.endThreadgroup();
  };
  watcher.addThreadgroupArray = [](void* state, const void* address, size_t bytes) {
    auto& self = *static_cast<Observer*>(state);
    self.shadow_.addThreadgroupArray(static_cast<size_t>(static_cast<const std::byte*>(address) - self.arena_), bytes);
  };
  watcher.simdgroupFence = [](void* state, uint32_t simdgroup, uint32_t memory) {
    auto& self = *static_cast<Observer*>(state);
    self.enterPending();
    self.shadow_.simdgroupFence(simdgroup, memory);
  };
  watcher.threadgroupFence = [](void* state, uint32_t memory) {
    auto& self = *static_cast<Observer*>(state);
    self.enterPending();
    self.shadow_.threadgroupFence(memory);
  };
  watcher.mistake = [](void* state, const char* file, uint32_t line, uint32_t lane, const char* text) {
    auto& self = *static_cast<Observer*>(state);
    const Mistake mistake{text, {AccessKind::read, 0, self.shadow_.threadgroup(), lane}};
    const auto [at, isNew] = self.mistakes_.try_emplace({fileName(file), line}, mistake);
    const auto rank = [](const Mistake& m) { return std::tuple(m.actor.threadgroup, m.actor.lane); };
    if (!isNew && rank(mistake) < rank(at->second)) at->second = mistake;
  };
  return watcher;
}

}  // namespace mnk::host
