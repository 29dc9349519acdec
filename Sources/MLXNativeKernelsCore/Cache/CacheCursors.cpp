#include "Cache/CacheCursors.hpp"

#include "Cache/AttentionCacheRules.hpp"
#include "MLXNativeKernels/AttentionCache.hpp"

#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr uint64_t kMaxPositions = uint64_t{1} << 62;  // out of reach in practice, and sums do not overflow

Error changedError(std::string got, std::string expected) {
  return {.op = std::string(kCacheName),
          .what = "the cache was changed while this encoder recorded",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "Encode this step again, with a new encoder. Truncate and run other steps before it or after it.",
          .retryable = true};
}

}  // namespace

Error suspectError(uint32_t sequence, const CacheCursor& cursor) {
  return {.op = std::string(kCacheName),
          .what = "the sequence is suspect because earlier work on it failed or was not committed",
          .got = fmt::format("sequence {}, unknown from position {}", sequence, *cursor.suspectFrom),
          .expected = "a sequence whose contents are known",
          .fix = *cursor.suspectFrom == 0
                     ? "Commit the encoder that fills the cache, if there is one; otherwise reset the sequence."
                     : fmt::format("Truncate it to position {} or less, or reset it.", *cursor.suspectFrom)};
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

std::string CacheSlots::cutsText(const CacheCursor& cursor, uint64_t window) const {
  if (oldestKept(cursor) == 0) return fmt::format("0 to {}", cursor.next);
  const uint64_t earliest = oldestKept(cursor) + std::max<uint64_t>(window, 1) - 1;
  const std::string first = pinned == 0 ? "0" : fmt::format("0 to {}", pinned);
  return earliest > cursor.next ? first : fmt::format("{}, or {} to {}", first, earliest, cursor.next);
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
  if (cursor.next > cursor.highest || cursor.highest > kMaxPositions) return false;
  if (wrap == KVWrap::linear && cursor.highest > capacity) return false;
  // Truncating to a pinned position empties the rest of the ring.
  if (cursor.next <= pinned) return cursor.next == cursor.highest;
  return cursor.next >= oldestKept(cursor);
}

uint64_t CacheSlots::slotOf(uint64_t position) const {
  if (wrap == KVWrap::linear || position < pinned) return position;
  return pinned + (position - pinned) % (capacity - pinned);
}

std::optional<CacheCursor> CacheSlots::moved(const CacheCursor& cursor, const CacheSlots& from) const {
  if (from == *this) return cursor;
  const uint64_t oldest = from.oldestKept(cursor), ring = capacity - pinned;
  if (oldest == 0) {
    if (cursor.next > capacity) return std::nullopt;
    return CacheCursor{.next = cursor.next, .highest = cursor.next};
  }
  if (wrap == KVWrap::linear || pinned != from.pinned || cursor.next - oldest > ring) return std::nullopt;
  // Positions before `oldest` stay lost. It is as if this ring had been filled from `oldest` on, and rolled back.
  return CacheCursor{.next = cursor.next, .highest = oldest + ring};
}

uint64_t CacheSlots::exactChunk(const CacheCursor& cursor, uint64_t tokens, uint64_t window) const {
  if (wrap == KVWrap::linear || tokens == 0) return tokens;
  // The chunk must not overwrite a position that its first row sees: any position if there is no window, otherwise
  // those in its window.
  if (window == 0) {
    const uint64_t free = std::max(capacity, cursor.highest) - cursor.next;  // slots of nothing, or of a rollback
    return std::min(tokens, std::max<uint64_t>(free, 1));
  }
  const uint64_t first = std::max(cursor.next, pinned);  // rows at pinned positions see nothing that is overwritten
  const uint64_t end = std::max(first + 1 - std::min(first + 1, window), pinned) + (capacity - pinned);
  return end > cursor.next && end >= cursor.highest ? std::min(tokens, end - cursor.next) : 0;
}

Result<CacheCursor> CacheCursors::at(uint32_t sequence) const {
  MNK_TRY(const uint32_t number, numberOf(sequence));
  std::lock_guard lock(EncodingParticipant::mutex());
  return cursors_[number];
}

std::vector<CacheCursor> CacheCursors::all() const {
  std::lock_guard lock(EncodingParticipant::mutex());
  return cursors_;
}

bool CacheCursors::isAnySuspect() const {
  std::lock_guard lock(EncodingParticipant::mutex());
  return std::ranges::any_of(cursors_, [](const CacheCursor& cursor) { return cursor.suspectFrom.has_value(); });
}

uint64_t CacheCursors::changes() const {
  std::lock_guard lock(EncodingParticipant::mutex());
  return changes_;
}

void CacheCursors::restore(std::vector<CacheCursor> cursors) {
  std::lock_guard lock(EncodingParticipant::mutex());
  cursors_ = std::move(cursors);
  ++changes_;
}

Result<void> CacheCursors::checkKnown(uint32_t sequence) const {
  if (sequence < cursors_.size()) return {};
  return Error{.op = std::string(kCacheName),
               .what = "the sequence is not in the cache",
               .got = fmt::format("sequence {}", sequence),
               .expected = fmt::format("less than {}", cursors_.size()),
               .fix = "Pass a sequence that the cache holds."};
}

Result<uint32_t> CacheCursors::numberOf(uint32_t sequence) const {
  if (sequence == kOnlySequence && cursors_.size() == 1) return 0;
  if (sequence == kOnlySequence) {
    return Error{.op = std::string(kCacheName),
                 .what = "the call does not say which sequence of the cache it is for",
                 .got = fmt::format("no sequence, and a cache of {}", countText(cursors_.size(), "sequence")),
                 .expected = fmt::format("a sequence from 0 to {}, or a list", cursors_.size() - 1),
                 .fix = "Name the sequence, or list the sequences of the rows."};
  }
  MNK_TRY(checkKnown(sequence));
  return sequence;
}

Result<void> CacheCursors::truncate(uint64_t position, uint32_t of) {
  MNK_TRY(const uint32_t sequence, numberOf(of));
  std::lock_guard lock(EncodingParticipant::mutex());
  CacheCursor& cursor = cursors_[sequence];
  const uint64_t oldest = slots_.oldestKept(cursor);
  const bool leavesPinnedOnly = position <= slots_.pinned;
  if (position != 0 && cursor.suspectFrom && position > *cursor.suspectFrom) return suspectError(sequence, cursor);
  if (window_ != 0 && position < cursor.next && !leavesPinnedOnly &&
      slots_.exactChunk({.next = position, .highest = cursor.highest}, 1, window_) == 0) {
    return Error{.op = std::string(kCacheName),
                 .what = "the rollback is too long for the sliding window",
                 .got = fmt::format("a rollback of {} to position {} of sequence {}, whose ring has overwritten "
                                    "positions that its window of {} then sees",
                                    countText(cursor.next - position, "token"), position, sequence, window_),
                 .expected = slots_.cutsText(cursor, window_),
                 .fix = std::string(kAfterLongRollback)};
  }
  if (position != 0 && (position > cursor.next || (position < oldest && !leavesPinnedOnly))) {
    return Error{.op = std::string(kCacheName),
                 .what = "the sequence cannot be cut there",
                 .got = fmt::format("position {} of sequence {}, which has {}", position, sequence,
                                    countText(cursor.next, "position")),
                 .expected = slots_.cutsText(cursor, window_),
                 .fix = "Cut at a position whose predecessors the cache still holds, or reset the sequence."};
  }
  cut(position, sequence);
  cursor.next = position;
  if (leavesPinnedOnly) cursor.highest = position;  // the ring is empty again
  cursor.suspectFrom.reset();
  return {};
}

void CacheCursors::reset() {
  std::lock_guard lock(EncodingParticipant::mutex());
  for (uint32_t sequence = 0; sequence < cursors_.size(); ++sequence) {
    cut(0, sequence);
    cursors_[sequence] = {};
  }
}

// Records the truncation in all uncommitted recordings. The lock must be held.
void CacheCursors::cut(uint64_t position, uint32_t sequence) noexcept {
  ++changes_;
  if (position >= cursors_[sequence].next) return;
  for (Recording* recording = recordings_; recording; recording = recording->next_) {
    if (Recording::Change* change = recording->find(sequence)) change->cutAt = std::min(change->cutAt, position);
  }
}

Result<CacheCursors::Recording*> CacheCursors::join(const std::shared_ptr<CacheCursors>& cursors,
                                                    CommandEncoder& encoder, std::span<const uint32_t> sequences) {
  for (uint32_t sequence : sequences) MNK_TRY(cursors->checkKnown(sequence));
  if (auto* known = encoder.participant(cursors.get())) return static_cast<Recording*>(known);
  auto recording = Recording::begin(cursors);
  Recording* const joined = recording.get();
  MNK_TRY(encoder.join(cursors.get(), std::move(recording)));
  return joined;
}

std::shared_ptr<CacheCursors::Recording> CacheCursors::Recording::begin(const std::shared_ptr<CacheCursors>& cursors) {
  constexpr size_t kMaxIdle = 8;  // more than most apps have in flight
  std::shared_ptr<Recording> recording;
  std::lock_guard lock(mutex());
  if (cursors->idle_.empty()) {
    cursors->idle_.reserve(kMaxIdle);
    recording = std::make_shared<Recording>();
  } else {
    recording = std::move(cursors->idle_.back());
    cursors->idle_.pop_back();
  }
  recording->enter(cursors);
  return recording;
}

void CacheCursors::Recording::enter(const std::shared_ptr<CacheCursors>& cursors) noexcept {
  cursors_ = cursors;
  previous_ = nullptr;
  next_ = std::exchange(cursors_->recordings_, this);
  if (next_) next_->previous_ = this;
  isListed_ = true;
}

CacheCursors::Recording::~Recording() {
  std::lock_guard lock(mutex());
  leave();
}

void CacheCursors::Recording::leave() noexcept {
  if (!std::exchange(isListed_, false)) return;
  (previous_ ? previous_->next_ : cursors_->recordings_) = next_;
  if (next_) next_->previous_ = previous_;
}

CacheCursors::Recording::Change* CacheCursors::Recording::find(uint32_t sequence) {
  const auto found = std::ranges::lower_bound(changes_, sequence, {}, &Change::sequence);
  return found == changes_.end() || found->sequence != sequence ? nullptr : &*found;
}

CacheCursors::Recording::Change& CacheCursors::Recording::changeOf(uint32_t sequence) {
  const auto place = std::ranges::lower_bound(changes_, sequence, {}, &Change::sequence);
  const bool isNew = place == changes_.end() || place->sequence != sequence;
  Change& change = isNew ? *changes_.insert(place, Change{.sequence = sequence}) : *place;
  if (change.isWritten()) return change;
  // Follows appends by other encoders until this encoder appends.
  change.before = change.after = cursors_->cursors_[sequence];
  if (change.cutAt >= change.readEnd) change.cutAt = UINT64_MAX;  // the truncation removed nothing that was read
  return change;
}

CacheCursor CacheCursors::Recording::after(uint32_t sequence) {
  std::lock_guard lock(mutex());
  return changeOf(sequence).after;
}

Result<CacheCursor> CacheCursors::Recording::known(uint32_t sequence) {
  const CacheCursor cursor = after(sequence);
  if (cursor.suspectFrom) return suspectError(sequence, cursor);
  return cursor;
}

Result<CacheCursor> CacheCursors::Recording::toAppend(uint32_t sequence) {
  MNK_TRY(auto cursor, known(sequence));
  if (!change(sequence).isAttendedFirst) return cursor;
  return Error{.op = std::string(kCacheName),
               .what = "causal attention of this step has already read the sequence, without these tokens",
               .got = fmt::format("attention, then an append to sequence {}", sequence),
               .expected = "the append before the attention of its tokens",
               .fix = "Append first, then attend; or append in another step."};
}

Result<void> CacheCursors::Recording::toReplace(uint32_t sequence) {
  (void)after(sequence);
  return checkRotated(change(sequence));
}

void CacheCursors::Recording::advanceTo(uint64_t next, uint32_t sequence) {
  Change& change = this->change(sequence);
  change.isAppended = change.isAppended || next != change.after.next;
  change.after.advanceTo(next);
}

void CacheCursors::Recording::rotate(uint64_t begin, uint64_t end, uint32_t sequence) {
  rotations_.push_back({begin, end, sequence});
}

bool CacheCursors::Recording::isOvertaken(uint32_t sequence) {
  std::lock_guard lock(mutex());
  const Change& change = this->change(sequence);
  return !change.isReplaced && (change.rotatedBegin < change.before.next || change.cutAt < change.readEnd);
}

Error CacheCursors::Recording::overtakenError(uint32_t sequence, uint64_t rotatedFor) {
  return changedError(fmt::format("sequence {} at position {}", sequence, after(sequence).next),
                      fmt::format("position {}, for which tokens are rotated", rotatedFor));
}

void CacheCursors::Recording::keepRotations(bool hasOffsets, std::span<const int32_t> numbers) noexcept {
  std::lock_guard lock(mutex());
  hasRotated_ = hasRotated_ || !rotations_.empty();
  for (size_t i = 0; i < rotations_.size(); ++i) {
    const auto& [begin, end, sequence] = rotations_[i];
    Change& change = this->change(sequence);
    RotationOffsets& all = change.rotationOffsets;
    if (change.rotatedEnd == 0) all = {.areGiven = true};
    all.areGiven = all.areGiven && hasOffsets;
    if (numbers.size() == 1 || i < numbers.size()) all.add(numbers[numbers.size() == 1 ? 0 : i]);
    change.rotatedBegin = std::min(change.rotatedBegin, begin);
    change.rotatedEnd = std::max(change.rotatedEnd, end);
    if (!change.isWritten()) change.readEnd = std::max(change.readEnd, begin);  // a truncation would move the tokens
  }
  rotations_.clear();
}

std::optional<RotationOffsets> CacheCursors::Recording::offsetsOf(uint32_t sequence) {
  const Change& change = this->change(sequence);
  if (change.rotatedEnd == 0) return std::nullopt;
  return change.rotationOffsets;
}

void CacheCursors::Recording::read(uint64_t begin, uint64_t end, uint32_t sequence, bool isCausalAttention) {
  std::lock_guard lock(mutex());
  Change& change = this->change(sequence);
  if (isCausalAttention && begin < end && !change.isAppended) change.isAttendedFirst = true;
  // What this encoder writes itself cannot change.
  if (change.isReplaced) return;
  if (change.isWritten()) end = std::min(end, change.before.next);
  if (begin >= end) return;
  if (end > cursors_->slots_.pinned) change.readInRing = std::min(change.readInRing, begin);
  change.readEnd = std::max(change.readEnd, end);
}

void CacheCursors::Recording::replace(const CacheCursor& by, uint32_t sequence) {
  std::lock_guard lock(mutex());
  Change& change = this->change(sequence);
  change.after = by;
  change.isReplaced = change.isAppended = true;
  change.isAttendedFirst = false;
  change.rotatedBegin = UINT64_MAX, change.rotatedEnd = 0;  // what was rotated has been appended and is replaced
  change.keyEmbedding.reset();
}

Result<void> CacheCursors::Recording::checkComplete() {
  for (const Change& change : changes_) MNK_TRY(checkRotated(change));
  return {};
}

Result<void> CacheCursors::Recording::check() {
  for (const Change& change : changes_) MNK_TRY(check(change));
  return {};
}

Result<void> CacheCursors::Recording::checkRotated(const Change& change) {
  if (change.rotatedEnd <= change.after.next) return {};
  return Error{.op = std::string(kCacheName),
               .what = "the step rotates tokens by the cache's next positions and does not append them",
               .got = fmt::format("rotation up to position {}, and {} of sequence {}", change.rotatedEnd,
                                  countText(change.after.next, "position"), change.sequence),
               .expected = "an append of the rotated tokens, after their rotation and in the same step",
               .fix =
                   "Append the rotated keys to the cache whose positions they follow, after their rotation; or pass "
                   "positions as numbers."};
}

Result<void> CacheCursors::Recording::check(const Change& change) const {
  const uint32_t sequence = change.sequence;
  const CacheCursor& now = cursors_->cursors_[sequence];
  if (!change.isWritten() && change.readEnd == 0) return checkRotated(change);  // or after a rejected append
  // Tokens that were rotated before others appended have other positions now.
  const bool isRotatedElsewhere = !change.isReplaced && change.rotatedBegin < change.before.next;
  const bool hasMoved = change.isWritten() && (now != change.before || isRotatedElsewhere);
  if (now.suspectFrom && (hasMoved || change.readEnd > *now.suspectFrom)) return suspectError(sequence, now);
  if (hasMoved) {
    const bool isBack = now.next == change.before.next && now != change.before;
    return changedError(
        fmt::format("sequence {}{} at position {}", sequence, isBack ? ", appended to and cut," : "", now.next),
        fmt::format("position {}, where the encoder began", std::min(change.before.next, change.rotatedBegin)));
  }
  const uint64_t used = std::max(change.readEnd, change.isWritten() ? change.before.next : 0);
  if (change.cutAt < used) {
    return changedError(fmt::format("sequence {}, cut at position {}", sequence, change.cutAt),
                        fmt::format("positions before {} as they were when they were encoded", used));
  }
  const uint64_t oldest = cursors_->slots_.oldestKept(now);
  if (change.readInRing < oldest) {
    return changedError(fmt::format("sequence {}, whose ring has overwritten positions before {}", sequence, oldest),
                        fmt::format("positions from {}, which the encoder reads", change.readInRing));
  }
  return checkRotated(change);
}

void CacheCursors::Recording::advance() noexcept {
  leave();
  for (const Change& change : changes_) {
    if (!change.isWritten()) continue;
    if (change.isReplaced) cursors_->cut(0, change.sequence);
    cursors_->cursors_[change.sequence] = change.after;
    ++cursors_->changes_;
  }
}

void CacheCursors::Recording::finished(const Result<void>& outcome) noexcept {
  std::shared_ptr<CacheCursors> last;  // released after the lock
  std::lock_guard lock(mutex());
  for (const Change& change : changes_) {
    if (outcome || !change.isWritten()) continue;
    CacheCursor& cursor = cursors_->cursors_[change.sequence];
    cursor.suspectFrom = std::min(cursor.suspectFrom.value_or(UINT64_MAX), change.isReplaced ? 0 : change.before.next);
    ++cursors_->changes_;
  }
  last = std::move(cursors_);
  changes_.clear();
  rotations_.clear();
  hasRotated_ = usesRotated_ = false;
  if (last->idle_.size() < last->idle_.capacity()) last->idle_.push_back(shared_from_this());
}

}  // namespace mnk
