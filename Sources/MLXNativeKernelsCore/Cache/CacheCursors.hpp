// Where the sequences of a cache stand, and what an encoder that appends to them will make of it. All functions may be
// called from any thread, except for those of an Appending, which belongs to its encoder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/KVCacheView.hpp"
#include "Ops/CacheAddressing.hpp"

namespace mnk {

struct CacheCursor {
  uint64_t next = 0;
  uint64_t highest = 0;  // largest `next` since the last reset: what lies a ring's length before it is overwritten
  std::optional<uint64_t> suspectFrom = {};  // the first position whose contents a failed step left unknown

  void advanceTo(uint64_t position) {
    next = position;
    highest = std::max(highest, position);
  }

  bool operator==(const CacheCursor&) const = default;
};

// The slots of one sequence.
struct CacheSlots {
  uint64_t capacity = 0;
  KVWrap wrap = KVWrap::linear;
  uint64_t pinned = 0;

  // The oldest position, other than the pinned ones, that is still held.
  uint64_t oldestKept(const CacheCursor& cursor) const;
  // Positions that can be read.
  uint64_t count(const CacheCursor& cursor) const;
  bool holds(const CacheCursor& cursor, uint64_t position, uint64_t tokens) const;
  // Positions that can be read, and positions that the sequence can be cut at, in words.
  std::string heldText(const CacheCursor& cursor) const;
  std::string cutsText(const CacheCursor& cursor) const;
  // The slots of positions that can be read, in the order of slots.
  std::vector<SlotRun> heldSlots(const CacheCursor& cursor) const;
  // Slots that were written since the last reset: the first so many.
  uint64_t used(const CacheCursor& cursor) const;
  // Whether appends and truncations can lead there.
  bool canReach(const CacheCursor& cursor) const;
  // How many of `tokens` tokens can be stored before the first of them attends, so that all attend as they would one by
  // one; 0 where not even one of them would see its whole window. A window of 0 is none.
  uint64_t exactChunk(const CacheCursor& cursor, uint64_t tokens, uint64_t window) const;
};

class CacheCursors {
 public:
  class Appending;

  CacheCursors(CacheSlots slots, uint32_t sequences) : slots_(slots), cursors_(sequences) {}

  const CacheSlots& slots() const { return slots_; }
  // Of an unknown sequence: an empty one.
  CacheCursor at(uint32_t sequence) const;
  std::vector<CacheCursor> all() const;
  void restore(std::vector<CacheCursor> cursors);

  Result<void> checkKnown(uint32_t sequence) const;
  // Where a known sequence stands in the eyes of an encoder, which sees what it has appended itself.
  Result<CacheCursor> seenBy(const CommandEncoder& encoder, uint32_t sequence) const;
  // Whether all of these positions hold what was appended there, as seen by an encoder.
  Result<void> checkHeld(const CommandEncoder& encoder, uint64_t position, uint64_t tokens, uint32_t sequence) const;
  Result<void> truncate(uint64_t position, uint32_t sequence);
  void reset();

  // What this encoder appends. All listed sequences are known and not suspect.
  static Result<Appending*> join(const std::shared_ptr<CacheCursors>& cursors, CommandEncoder& encoder,
                                 std::span<const uint32_t> sequences);

 private:
  CacheSlots slots_;
  mutable std::mutex mutex_;
  std::vector<CacheCursor> cursors_;
};

// It starts from the cache's cursors and becomes them when the encoder is committed.
class CacheCursors::Appending final : public EncodingParticipant {
 public:
  explicit Appending(std::shared_ptr<CacheCursors> cursors) : cursors_(std::move(cursors)) {}

  // Where the sequence stands after what was recorded.
  CacheCursor after(uint32_t sequence);
  void advanceTo(uint64_t next, uint32_t sequence);
  // The same, of a sequence that is read and must stand there still when the encoder is committed.
  CacheCursor require(uint32_t sequence);
  // All that the sequence held is replaced.
  void replace(const CacheCursor& by, uint32_t sequence);

  Result<void> advance() override;
  void retreat() override;
  void finished(const Result<void>& outcome) override;

 private:
  struct Change {
    uint32_t sequence;
    CacheCursor before;
    CacheCursor after;
    bool isReplaced = false;  // even if it ends where it began
    bool isRequired = false;
  };
  Change& changeOf(uint32_t sequence);

  std::shared_ptr<CacheCursors> cursors_;
  std::vector<Change> changes_;
};

Error suspectError(uint32_t sequence, const CacheCursor& cursor);

}  // namespace mnk
