// What an AttentionCache is made of; its copies share it.
#pragma once
#include <memory>
#include <vector>

#include "Cache/CacheCursors.hpp"
#include "Cache/CacheStorage.hpp"
#include "Ops/FlashDecode/FlashDecodeLayout.hpp"

namespace mnk {

struct AttentionCache::State {
  AttentionCacheDescriptor descriptor;
  CacheStorage storage;
  CacheCursors cursors;

  State(AttentionCacheDescriptor of, CacheStorage with, CacheSlots slots)
      : descriptor(std::move(of)), storage(std::move(with)), cursors(slots, descriptor.sequences) {}

  // The window of rows that attend with these options.
  uint32_t windowOf(const AttentionOptions& options) const {
    return options.window == 0 && descriptor.slidingWindow ? descriptor.slidingWindow->window : options.window;
  }
  FlashDecode attention(const HeadsView& queries, const AttentionResults& results, const AttentionOptions& options,
                        std::vector<AttendedSequence> attended) const;
  Result<Plan> planAttend(const std::shared_ptr<Device>& device, const HeadsView& queries,
                          const AttentionResults& results, const AttentionOptions& options,
                          std::vector<AttendedSequence> attended,
                          const std::optional<ScratchQueries>& rotated = {}) const;
  // `rows` rows attend to a sequence.
  void noteRead(CacheCursors::Recording& recording, const AttendedSequence& attended, uint64_t rows,
                const AttentionOptions& options) const;
};

}  // namespace mnk
