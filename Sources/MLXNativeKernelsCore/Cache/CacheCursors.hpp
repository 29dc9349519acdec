// Where the sequences of a cache stand, and what encoders that are not committed have recorded for them. All functions
// may be called from any thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/KVCacheView.hpp"
#include "Ops/Common/CacheAddressing.hpp"

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
  class Recording;

  CacheCursors(CacheSlots slots, uint32_t sequences) : slots_(slots), cursors_(sequences) {}

  const CacheSlots& slots() const { return slots_; }
  // Of an unknown sequence: an empty one.
  CacheCursor at(uint32_t sequence) const;
  std::vector<CacheCursor> all() const;
  void restore(std::vector<CacheCursor> cursors);
  // How often a sequence was changed: two equal numbers mean that nothing changed in between.
  uint64_t changes() const;

  Result<void> checkKnown(uint32_t sequence) const;
  Result<void> truncate(uint64_t position, uint32_t sequence);
  void reset();

  // What this encoder records. All listed sequences are known.
  static Result<Recording*> join(const std::shared_ptr<CacheCursors>& cursors, CommandEncoder& encoder,
                                 std::span<const uint32_t> sequences);

 private:
  void cut(uint64_t position, uint32_t sequence) noexcept;

  CacheSlots slots_;
  // All under EncodingParticipant::mutex.
  std::vector<CacheCursor> cursors_;
  uint64_t changes_ = 0;
  Recording* recordings_ = nullptr;               // of encoders that are not committed, as a list
  std::vector<std::shared_ptr<Recording>> idle_;  // of finished work, to be used again
};

// What one encoder appends to and reads of a cache. It starts from the cache's cursors and becomes them when the
// encoder is committed. The commit is refused if others have changed what the encoder reads or where it appends.
class CacheCursors::Recording final : public EncodingParticipant, public std::enable_shared_from_this<Recording> {
 public:
  static std::shared_ptr<Recording> begin(const std::shared_ptr<CacheCursors>& cursors);
  Recording() = default;
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Where the sequence stands after what was recorded. The functions below it that change the sequence need this call
  // before them, and then no memory.
  CacheCursor after(uint32_t sequence);
  // The same, of a sequence whose contents are known.
  Result<CacheCursor> known(uint32_t sequence);
  void advanceTo(uint64_t next, uint32_t sequence);
  // Positions from `begin` up to `end`, and pinned ones before them, are read.
  void read(uint64_t begin, uint64_t end, uint32_t sequence);
  // All that the sequence held is replaced.
  void replace(const CacheCursor& by, uint32_t sequence);

  Result<void> check() override;
  void advance() noexcept override;
  void finished(const Result<void>& outcome) noexcept override;

 private:
  friend class CacheCursors;
  struct Change {
    uint32_t sequence = 0;
    CacheCursor before;
    CacheCursor after;
    bool isReplaced = false;           // even if it ends where it began
    uint64_t readInRing = UINT64_MAX;  // where the first read begins that reaches behind the pinned slots
    uint64_t readEnd = 0;
    uint64_t cutAt = UINT64_MAX;  // the lowest position at which others have cut the sequence meanwhile

    bool isWritten() const { return before != after || isReplaced; }
  };
  Change* find(uint32_t sequence);  // null: none yet
  Change& change(uint32_t sequence) { return *find(sequence); }
  Change& changeOf(uint32_t sequence);
  Result<void> check(const Change& change) const;
  void enter(const std::shared_ptr<CacheCursors>& cursors) noexcept;
  void leave() noexcept;

  std::shared_ptr<CacheCursors> cursors_;
  std::vector<Change> changes_;  // sorted by sequence
  Recording* previous_ = nullptr;
  Recording* next_ = nullptr;
  bool isListed_ = false;
};

Error suspectError(uint32_t sequence, const CacheCursor& cursor);

}  // namespace mnk
