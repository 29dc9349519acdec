// What an AttentionCache is made of; its copies share it.
#pragma once
#include "Cache/CacheCursors.hpp"
#include "Cache/CacheStorage.hpp"

namespace mnk {

struct AttentionCache::State {
  AttentionCacheDescriptor descriptor;
  CacheStorage storage;
  CacheCursors cursors;

  State(AttentionCacheDescriptor of, CacheStorage with, CacheSlots slots)
      : descriptor(std::move(of)), storage(std::move(with)), cursors(slots, descriptor.sequences) {}
};

}  // namespace mnk
