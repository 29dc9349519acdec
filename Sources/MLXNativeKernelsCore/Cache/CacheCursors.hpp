// The cursors of a cache's sequences, and what uncommitted encoders have recorded for them. All functions are
// thread-safe.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Ops/Common/CacheAddressing.hpp"

namespace mnk {

struct CacheCursor {
  uint64_t next = 0;
  // High-water mark of `next` since the last reset; positions more than a ring's length below it are overwritten.
  uint64_t highest = 0;
  std::optional<uint64_t> suspectFrom = {};  // the first position that a failed step left undefined

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
  // Texts that list the readable positions, and the positions that the sequence can be truncated to; with a window,
  // those after which the next row sees all of it.
  std::string heldText(const CacheCursor& cursor) const;
  std::string cutsText(const CacheCursor& cursor, uint64_t window) const;
  // The slots of positions that can be read, in the order of slots.
  std::vector<SlotRun> heldSlots(const CacheCursor& cursor) const;
  // The number of slots written since the last reset; they are the first ones.
  uint64_t used(const CacheCursor& cursor) const;
  // Whether a series of appends and truncations can produce this cursor.
  bool canReach(const CacheCursor& cursor) const;
  uint64_t slotOf(uint64_t position) const;
  // The cursor of a sequence whose readable positions move here from other slots; nothing if these cannot hold them.
  std::optional<CacheCursor> moved(const CacheCursor& cursor, const CacheSlots& from) const;
  // How many of `tokens` tokens can be stored before the first of them attends, with the same results as one by one. 0
  // if not even one row would see its whole window. A window of 0 means none.
  uint64_t exactChunk(const CacheCursor& cursor, uint64_t tokens, uint64_t window) const;

  bool operator==(const CacheSlots&) const = default;
};

class CacheCursors {
 public:
  class Recording;

  // `window` is the one that every row sees unless it has its own; 0: none.
  CacheCursors(CacheSlots slots, uint32_t sequences, uint64_t window)
      : slots_(slots), window_(window), cursors_(sequences) {}

  const CacheSlots& slots() const { return slots_; }
  Result<CacheCursor> at(uint32_t sequence) const;
  std::vector<CacheCursor> all() const;
  bool isAnySuspect() const;
  void restore(std::vector<CacheCursor> cursors);
  // Counts changes of any sequence: if it has not changed, no sequence has.
  uint64_t changes() const;

  Result<void> checkKnown(uint32_t sequence) const;
  // The number of a sequence, for which kOnlySequence may stand.
  Result<uint32_t> numberOf(uint32_t sequence) const;
  Result<void> truncate(uint64_t position, uint32_t sequence);
  void reset();

  // What this encoder records. All listed sequences are known.
  static Result<Recording*> join(const std::shared_ptr<CacheCursors>& cursors, CommandEncoder& encoder,
                                 std::span<const uint32_t> sequences);

 private:
  void cut(uint64_t position, uint32_t sequence) noexcept;

  CacheSlots slots_;
  uint64_t window_ = 0;
  // All under EncodingParticipant::mutex.
  std::vector<CacheCursor> cursors_;
  uint64_t changes_ = 0;
  Recording* recordings_ = nullptr;               // linked list of uncommitted recordings
  std::vector<std::shared_ptr<Recording>> idle_;  // recordings of finished work, for reuse
};

// What rotations add to positions.
struct RotationOffsets {
  bool areGiven = false;  // to all of them
  // The least and the largest number that is known; no numbers: those of a tensor.
  int32_t least = INT32_MAX;
  int32_t largest = INT32_MIN;

  void add(int32_t number) {
    least = std::min(least, number);
    largest = std::max(largest, number);
  }
  // A known number other than this one.
  std::optional<int32_t> anotherThan(uint64_t number) const {
    if (least > largest) return std::nullopt;
    if (!std::cmp_equal(least, number)) return least;
    return std::cmp_equal(largest, number) ? std::nullopt : std::optional(largest);
  }
};

// What one encoder appends to and reads from a cache. A recording starts from the cache's cursors and replaces them
// when the encoder is committed. The commit fails if other encoders have changed what this one reads or appends to.
class CacheCursors::Recording final : public EncodingParticipant, public std::enable_shared_from_this<Recording> {
 public:
  static std::shared_ptr<Recording> begin(const std::shared_ptr<CacheCursors>& cursors);
  Recording() = default;
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The cursor of the sequence after what was recorded. Call this before any function below that changes the sequence:
  // it allocates, so that they cannot fail.
  CacheCursor after(uint32_t sequence);
  // The same, but an error if the sequence is suspect.
  Result<CacheCursor> known(uint32_t sequence);
  // The same, but also an error if this encoder's attention has read the sequence without these tokens.
  Result<CacheCursor> toAppend(uint32_t sequence);
  // An error if this encoder has rotated tokens by the sequence's next positions and not appended them.
  Result<void> toReplace(uint32_t sequence);
  void advanceTo(uint64_t next, uint32_t sequence);
  // Positions from `begin` up to `end`, and pinned ones before them, are read.
  void read(uint64_t begin, uint64_t end, uint32_t sequence, bool isCausalAttention = false);
  // An op that is being recorded rotates by these positions, which this encoder must append.
  void rotate(uint64_t begin, uint64_t end, uint32_t sequence);
  struct Rotation {
    uint64_t begin, end;
    uint32_t sequence;
  };
  const std::vector<Rotation>& rotations() const { return rotations_; }  // of the op that is being recorded
  // The op asks again, or has been recorded. `numbers` are its offsets: one for each rotation or for all of them, or
  // nothing if a tensor holds them.
  void forgetRotations() noexcept { rotations_.clear(); }
  void keepRotations(bool hasOffsets, std::span<const int32_t> numbers) noexcept;
  // What this encoder's rotations add to positions of the sequence; nothing if it has rotated none of its tokens.
  std::optional<RotationOffsets> offsetsOf(uint32_t sequence);
  // This encoder appends keys of the sequence that are rotated by this embedding, and so by those that follow.
  void noteRotated(uint32_t sequence, uint64_t embedding) {
    change(sequence).keyEmbedding = embedding;
    hasRotated_ = true;
  }
  // Keys of the call that is being recorded are; none: the call begins. Later calls do not see it unless it is noted.
  void useEmbedding(uint32_t sequence, std::optional<uint64_t> embedding) {
    change(sequence).usedEmbedding = embedding;
    usesRotated_ = embedding.has_value();
  }
  std::optional<uint64_t> keyEmbedding(uint32_t sequence) {
    const Change& change = this->change(sequence);
    return change.keyEmbedding ? change.keyEmbedding : change.usedEmbedding;
  }
  // Whether this encoder has rotated tokens of the cache, or the call that is being recorded uses such tokens.
  bool hasRotated() const { return hasRotated_ || usesRotated_; }
  // Whether others have changed the sequence since this encoder rotated by its positions, so that the commit is
  // refused.
  bool isOvertaken(uint32_t sequence);
  Error overtakenError(uint32_t sequence, uint64_t rotatedFor);
  // All that the sequence held is replaced.
  void replace(const CacheCursor& by, uint32_t sequence);

  Result<void> checkComplete() override;
  Result<void> check() override;
  void advance() noexcept override;
  void finished(const Result<void>& outcome) noexcept override;

 private:
  friend class CacheCursors;
  struct Change {
    uint32_t sequence = 0;
    CacheCursor before;
    CacheCursor after;
    bool isReplaced = false;           // counts as written even if the cursor is unchanged
    uint64_t readInRing = UINT64_MAX;  // lowest position that is read after the pinned ones
    uint64_t readEnd = 0;
    uint64_t cutAt = UINT64_MAX;  // lowest position to which others have truncated the sequence since
    bool isAppended = false;
    bool isAttendedFirst = false;        // causal attention read it before anything was appended
    uint64_t rotatedBegin = UINT64_MAX;  // positions by which tokens were rotated
    uint64_t rotatedEnd = 0;
    RotationOffsets rotationOffsets;
    std::optional<uint64_t> keyEmbedding = {};
    std::optional<uint64_t> usedEmbedding = {};

    bool isWritten() const { return before != after || isReplaced; }
  };
  Change* find(uint32_t sequence);  // null: none yet
  Change& change(uint32_t sequence) { return *find(sequence); }
  Change& changeOf(uint32_t sequence);
  Result<void> check(const Change& change) const;
  static Result<void> checkRotated(const Change& change);
  void enter(const std::shared_ptr<CacheCursors>& cursors) noexcept;
  void leave() noexcept;

  std::shared_ptr<CacheCursors> cursors_;
  std::vector<Change> changes_;  // sorted by sequence
  std::vector<Rotation> rotations_;
  Recording* previous_ = nullptr;
  Recording* next_ = nullptr;
  bool isListed_ = false;
  bool hasRotated_ = false;
  bool usesRotated_ = false;
};

Error suspectError(uint32_t sequence, const CacheCursor& cursor);
// What helps after a rollback that is too long for a window.
inline constexpr std::string_view kAfterLongRollback =
    "Reset the sequence and append its tokens again; roll back less, or make the cache for longer drafts (maxDraft).";

}  // namespace mnk
