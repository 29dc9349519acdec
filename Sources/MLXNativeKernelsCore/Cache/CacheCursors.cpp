#include "Cache/CacheCursors.hpp"

#include <algorithm>

#include "Ops/FlashDecodeShape.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

constexpr std::string_view kOp = "AttentionCache";
constexpr uint64_t kMostPositions = uint64_t{1} << 62;  // nobody appends as many, and no sum of positions wraps

}  // namespace

Error suspectError(uint32_t sequence, const CacheCursor& cursor) {
  return {.op = std::string(kOp),
          .what = "the sequence is suspect because earlier work on it failed",
          .got = fmt::format("sequence {}, unknown from position {}", sequence, *cursor.suspectFrom),
          .expected = "a sequence whose contents are known",
          .fix = fmt::format("Truncate it to position {} or less, or reset it.", *cursor.suspectFrom)};
}

uint64_t CacheSlots::oldestKept(const CacheCursor& cursor) const {
  if (wrap == KVWrap::linear || cursor.highest <= capacity) return 0;
  return cursor.highest - (capacity - pinned);
}

uint64_t CacheSlots::count(const CacheCursor& cursor) const {
  const uint64_t kept = std::min(cursor.next, pinned);
  const uint64_t oldest = std::max(oldestKept(cursor), kept);
  return kept + (cursor.next > oldest ? cursor.next - oldest : 0);
}

bool CacheSlots::holds(const CacheCursor& cursor, uint64_t position, uint64_t tokens) const {
  if (!fits(position, tokens, cursor.next)) return false;
  return tokens == 0 || position + tokens <= pinned || position >= oldestKept(cursor);
}

std::string CacheSlots::heldText(const CacheCursor& cursor) const {
  return heldPositionsText(pinned, oldestKept(cursor), cursor.next);
}

std::string CacheSlots::cutsText(const CacheCursor& cursor) const {
  const uint64_t oldest = oldestKept(cursor);
  if (oldest == 0) return fmt::format("0 to {}", cursor.next);
  return fmt::format("{}, or {} to {}", pinned == 0 ? "0" : fmt::format("0 to {}", pinned), oldest, cursor.next);
}

std::vector<SlotRun> CacheSlots::heldSlots(const CacheCursor& cursor) const {
  const uint64_t oldest = oldestKept(cursor), ring = capacity - pinned;
  if (oldest == 0) return {{0, cursor.next}};
  const uint64_t first = pinned + (oldest - pinned) % ring, count = cursor.next > oldest ? cursor.next - oldest : 0;
  const uint64_t toEnd = std::min(count, capacity - first);
  return {{0, std::min(cursor.next, pinned)}, {pinned, count - toEnd}, {first, toEnd}};
}

uint64_t CacheSlots::used(const CacheCursor& cursor) const {
  return std::min(cursor.highest, capacity);
}

bool CacheSlots::canReach(const CacheCursor& cursor) const {
  if (cursor.next > cursor.highest || cursor.highest > kMostPositions) return false;
  if (wrap == KVWrap::linear && cursor.highest > capacity) return false;
  // Cutting at a pinned position empties the ring behind it.
  if (cursor.next <= pinned) return cursor.next == cursor.highest;
  return cursor.next >= oldestKept(cursor);
}

uint64_t CacheSlots::exactChunk(const CacheCursor& cursor, uint64_t tokens, uint64_t window) const {
  if (wrap == KVWrap::linear || tokens == 0) return tokens;
  // Nothing may be written behind this position before the first row has attended.
  if (window == 0) {
    const uint64_t free = cursor.highest <= capacity ? capacity - cursor.next : 0;
    return std::min(tokens, std::max<uint64_t>(free, 1));
  }
  const uint64_t first = std::max(cursor.next, pinned);  // rows at pinned positions see nothing that is overwritten
  const uint64_t end = std::max(first + 1 - std::min(first + 1, window), pinned) + (capacity - pinned);
  return end > cursor.next && end >= cursor.highest ? std::min(tokens, end - cursor.next) : 0;
}

CacheCursor CacheCursors::at(uint32_t sequence) const {
  std::lock_guard lock(mutex_);
  return sequence < cursors_.size() ? cursors_[sequence] : CacheCursor{};
}

std::vector<CacheCursor> CacheCursors::all() const {
  std::lock_guard lock(mutex_);
  return cursors_;
}

void CacheCursors::restore(std::vector<CacheCursor> cursors) {
  std::lock_guard lock(mutex_);
  cursors_ = std::move(cursors);
}

Result<void> CacheCursors::checkKnown(uint32_t sequence) const {
  std::lock_guard lock(mutex_);
  if (sequence < cursors_.size()) return {};
  return Error{.op = std::string(kOp),
               .what = "the sequence is not in the cache",
               .got = fmt::format("sequence {}", sequence),
               .expected = fmt::format("less than {}", cursors_.size()),
               .fix = "Pass a sequence that the cache holds."};
}

Result<CacheCursor> CacheCursors::seenBy(const CommandEncoder& encoder, uint32_t sequence) const {
  if (auto known = checkKnown(sequence); !known) return std::move(known).error();
  const auto appending = std::static_pointer_cast<Appending>(encoder.participant(this));
  return appending ? appending->after(sequence) : at(sequence);
}

Result<void> CacheCursors::checkHeld(const CommandEncoder& encoder, uint64_t position, uint64_t tokens,
                                     uint32_t sequence) const {
  auto seen = seenBy(encoder, sequence);
  if (!seen) return std::move(seen).error();
  const CacheCursor& cursor = *seen;
  if (!slots_.holds(cursor, position, tokens)) {
    return Error{.op = std::string(kOp),
                 .what = "the cache does not hold these positions",
                 .got = fmt::format("position {} + {} of sequence {}", position, countText(tokens, "token"), sequence),
                 .expected = slots_.heldText(cursor),
                 .fix = "Read positions that were appended and that the ring has not overwritten."};
  }
  if (cursor.suspectFrom && tokens != 0 && position + tokens > *cursor.suspectFrom) {
    return suspectError(sequence, cursor);
  }
  return {};
}

Result<void> CacheCursors::truncate(uint64_t position, uint32_t sequence) {
  if (auto known = checkKnown(sequence); !known) return known;
  std::lock_guard lock(mutex_);
  CacheCursor& cursor = cursors_[sequence];
  if (position == 0) {
    cursor = {};
    return {};
  }
  const uint64_t oldest = slots_.oldestKept(cursor);
  const bool leavesPinnedOnly = position <= slots_.pinned;
  if (cursor.suspectFrom && position > *cursor.suspectFrom) return suspectError(sequence, cursor);
  if (position > cursor.next || (position < oldest && !leavesPinnedOnly)) {
    return Error{.op = std::string(kOp),
                 .what = "the sequence cannot be cut there",
                 .got = fmt::format("position {} of sequence {}, which has {}", position, sequence,
                                    countText(cursor.next, "position")),
                 .expected = slots_.cutsText(cursor),
                 .fix = "Cut at a position whose predecessors the cache still holds, or reset the sequence."};
  }
  cursor.next = position;
  if (leavesPinnedOnly) cursor.highest = position;  // the ring is empty again
  cursor.suspectFrom.reset();
  return {};
}

void CacheCursors::reset() {
  std::lock_guard lock(mutex_);
  std::fill(cursors_.begin(), cursors_.end(), CacheCursor{});
}

Result<CacheCursors::Appending*> CacheCursors::join(const std::shared_ptr<CacheCursors>& cursors,
                                                    CommandEncoder& encoder, std::span<const uint32_t> sequences) {
  auto participant = std::static_pointer_cast<Appending>(encoder.participant(cursors.get()));
  if (!participant) {
    participant = std::make_shared<Appending>(cursors);
    if (auto joined = encoder.join(cursors.get(), participant); !joined) return std::move(joined).error();
  }
  for (uint32_t sequence : sequences) {
    if (auto known = cursors->checkKnown(sequence); !known) return std::move(known).error();
    const CacheCursor cursor = participant->after(sequence);
    if (cursor.suspectFrom) return suspectError(sequence, cursor);
  }
  return participant.get();
}

CacheCursors::Appending::Change& CacheCursors::Appending::changeOf(uint32_t sequence) {
  const auto found =
      std::find_if(changes_.begin(), changes_.end(), [&](const Change& change) { return change.sequence == sequence; });
  if (found != changes_.end()) return *found;
  const CacheCursor now = cursors_->at(sequence);
  return changes_.emplace_back(Change{sequence, now, now});
}

CacheCursor CacheCursors::Appending::after(uint32_t sequence) {
  return changeOf(sequence).after;
}

void CacheCursors::Appending::advanceTo(uint64_t next, uint32_t sequence) {
  changeOf(sequence).after.advanceTo(next);
}

CacheCursor CacheCursors::Appending::require(uint32_t sequence) {
  Change& change = changeOf(sequence);
  change.isRequired = true;
  return change.after;
}

void CacheCursors::Appending::replace(const CacheCursor& by, uint32_t sequence) {
  Change& change = changeOf(sequence);
  change.after = by;
  change.isReplaced = true;
}

Result<void> CacheCursors::Appending::advance() {
  std::lock_guard lock(cursors_->mutex_);
  // A sequence whose append was refused is none of this encoder's business.
  std::erase_if(changes_, [](const Change& change) {
    return change.before == change.after && !change.isReplaced && !change.isRequired;
  });
  for (const Change& change : changes_) {
    const CacheCursor& now = cursors_->cursors_[change.sequence];
    if (now == change.before) continue;
    if (now.suspectFrom) return suspectError(change.sequence, now);
    return Error{.op = std::string(kOp),
                 .what = "the cache was changed by somebody else while this encoder recorded",
                 .got = fmt::format("sequence {} at position {}", change.sequence, now.next),
                 .expected = fmt::format("position {}, where the encoder began", change.before.next),
                 .fix = "Append to a cache from one encoder at a time, and encode this step again.",
                 .retryable = true};
  }
  for (const Change& change : changes_) cursors_->cursors_[change.sequence] = change.after;
  return {};
}

void CacheCursors::Appending::retreat() {
  std::lock_guard lock(cursors_->mutex_);
  for (const Change& change : changes_) {
    CacheCursor& now = cursors_->cursors_[change.sequence];
    if (now == change.after) now = change.before;
  }
}

void CacheCursors::Appending::finished(const Result<void>& outcome) {
  if (outcome) return;
  std::lock_guard lock(cursors_->mutex_);
  for (const Change& change : changes_) {
    if (change.before == change.after && !change.isReplaced) continue;
    CacheCursor& cursor = cursors_->cursors_[change.sequence];
    cursor.suspectFrom = std::min(cursor.suspectFrom.value_or(UINT64_MAX), change.isReplaced ? 0 : change.before.next);
  }
}

}  // namespace mnk
