#include "Runtime/WorkInFlight.hpp"

#include <algorithm>
#include <map>
#include <new>

namespace mnk {

namespace {

Error failureOf(Error cause, std::string_view op, std::string_view what, std::string_view fix) {
  cause.fix.clear();  // the fix of the original error does not apply here
  std::string message = cause.message();
  message.pop_back();  // its period
  return makeError(cause.code, op, what, message, "memory that was written since", fix);
}

// Errors for memory that failed work should have written: when the CPU reads it, when a call that reads it is encoded,
// and when submitted work has already read it.
Error failedBytes(const Error& cause) {
  return failureOf(cause, "Buffer", "earlier work that was to write this memory failed",
                   "Write the memory again, or submit work that writes it.");
}

Error failedInput(const Error& cause) {
  return failureOf(cause, "CommandEncoder", "a kernel would read memory that failed work was to write",
                   "Write the memory again before work that reads it is encoded.");
}

Error failedDependence(const Error& cause) {
  return failureOf(cause, "CommandEncoder", "the work read memory that failed work was to write",
                   "Write the memory again, then submit this work again.");
}

// For bytes of a step that is encoded and not committed.
Error usedByOpenStep(bool toWrite) {
  if (toWrite) {
    return invalidArgument("Buffer", "an open step uses this memory when it runs, so it would see the new contents",
                           "a write before the step was submitted", "memory that no open step reads or writes",
                           "Write before the step is encoded, or give each call of the step its own tensor.");
  }
  return invalidArgument("Buffer", "an open step writes this memory when it runs, so it does not hold the result yet",
                         "a read before the step was submitted", "memory that no open step writes",
                         "Read after the step: after the closure of encode, or after the encoder is committed.");
}

// For work that would run before such a step.
Error runsBeforeOpenStep() {
  return invalidArgument(
      "CommandEncoder",
      "this step runs before one that is still open, and shares memory with it that one of them writes",
      "a step that is submitted while another one is open", "steps one after another",
      "Submit it before the open step is encoded, or after that one was submitted.");
}

// For work whose error is unknown.
Error failedUnreported() {
  return makeError(ErrorCode::deviceFault, "Buffer", "work on this memory failed",
                   "a command buffer of the app's that ended with an error", "memory that was written since",
                   "See the command buffer's error; write the memory again, or submit work that writes it.");
}

Touched plain(const MemoryRange& range) {
  const uint64_t bytes = range.end - range.begin;
  return {.space = range.space,
          .region = {.offset = range.begin, .rowBytes = bytes, .rowStride = bytes, .rows = 1},
          .isWrite = true,
          .isWhole = true};
}

bool shareBytes(const Touched& a, const Touched& b) {
  return a.space == b.space && overlap(a.region, b.region);
}

// Whether there are too many rows to list their ranges. Then the whole extent counts, or, for clearing, nothing.
bool hasManyRows(const Touched& touched) {
  return touched.region.rowStride > touched.region.rowBytes && touched.region.rows > (1 << 20);
}

Touched asRead(Touched touched) {
  touched.isWrite = false;
  return touched;
}

// Removes written bytes from the missing ones.
void removeWritten(std::map<const void*, IntervalSet>& missing, const Touched& written) {
  const auto space = missing.find(written.space);
  if (space == missing.end() || !written.isWhole || hasManyRows(written)) return;
  if (!overlapsAny(space->second, written.region)) return;
  forEachRange(written.region, 0, UINT64_MAX, [&](uint64_t begin, uint64_t end) { space->second.remove(begin, end); });
}

// If copying the counts by kind runs out of memory, returns less, because the work itself has succeeded.
Summary copied(const Summary& summary) noexcept {
  try {
    return summary;
  } catch (...) {
    return {.total = summary.total, .barriers = summary.barriers, .deviceSeconds = summary.deviceSeconds, .kinds = {}};
  }
}

thread_local uint32_t finishedHandlers = 0;

}  // namespace

Error notCommitted(bool toWrite) {
  return makeError(
      ErrorCode::wouldDeadlock, "Buffer", "work on this memory has not been started",
      "a command buffer of the app's that is not committed", "work that runs",
      toWrite ? "Write it after the command buffer is committed." : "Read it after the command buffer is committed.",
      true);
}

std::atomic<uint64_t> MemoryTracker::known_ = 0;

MemoryTracker& MemoryTracker::shared() {
  alignas(MemoryTracker) static std::byte storage[sizeof(MemoryTracker)];
  static auto* const tracker = new (storage) MemoryTracker;
  return *tracker;
}

bool MemoryTracker::isInOpenStep(const Touched& bytes) const {
  for (const OpenStep* step = open_; step; step = step->next_) {
    const std::span recorded(step->first_, step->count_.load(std::memory_order_acquire));
    const bool isUsed = std::any_of(recorded.begin(), recorded.end(), [&](const Touched& each) {
      return !each.isScratch && (each.isWrite || bytes.isWrite) && shareBytes(each, bytes);
    });
    if (isUsed) return true;
  }
  return false;
}

Result<void> MemoryTracker::checkOrder(std::span<const Touched> touched, const OpenStep& own) const {
  std::lock_guard lock(mutex_);
  for (const OpenStep* step = open_; step; step = step->next_) {
    if (step == &own || step->thread_ != std::this_thread::get_id()) continue;
    for (const Touched& open : std::span(step->first_, step->count_.load(std::memory_order_acquire))) {
      if (open.isScratch || open.isOrdered) continue;
      const bool isShared = std::any_of(touched.begin(), touched.end(), [&](const Touched& each) {
        return !each.isScratch && (each.isWrite || open.isWrite) && shareBytes(each, open);
      });
      if (isShared) return runsBeforeOpenStep();
    }
  }
  return {};
}

Result<void> MemoryTracker::wait(const MemoryRange& bytes, bool toWrite, bool refusesOpen) {
  Touched wanted = plain(bytes);
  wanted.isWrite = toWrite;
  const auto touches = [&](const Work& work, bool alsoReads) {
    Touched touched = wanted;
    touched.isWrite = alsoReads;
    return work.mayConflict(touched) && (!work.failure || work.isMarked(touched));
  };
  std::unique_lock lock(mutex_);
  if (refusesOpen && isInOpenStep(wanted)) return usedByOpenStep(toWrite);
  const uint64_t end = nextOrder_;
  for (;;) {
    WorkProgress progress = WorkProgress::done;
    for (const Work& work : works_) {
      if (!work.isRunning || work.order >= end || !touches(work, toWrite)) continue;
      progress = work.progress ? work.progress() : WorkProgress::underWay;
      if (progress != WorkProgress::done) break;
    }
    if (progress == WorkProgress::done) break;
    if (progress == WorkProgress::failed) return failedUnreported();
    if (isInFinishedHandler()) return waitInHandler("Buffer");
    if (progress == WorkProgress::notStarted) return notCommitted(toWrite);
    changed_.wait(lock);
  }
  if (toWrite) return {};
  for (const Work& work : works_) {
    if (!touches(work, false)) continue;
    if (work.failure) return failedBytes(*work.failure);
    if (!work.isRunning || work.order >= end) continue;
    // The work is done, but it has not been checked yet whether it read failed memory.
    if (const Work* failed = failedRead({}, work.touched, work.order)) return failedBytes(*failed->failure);
  }
  return {};
}

void MemoryTracker::written(const MemoryRange& bytes) noexcept {
  if (failed_.load(std::memory_order_acquire) == 0) return;
  Works dropped;
  std::lock_guard lock(mutex_);
  const Touched taken = plain(bytes);
  clear({&taken, 1}, nextOrder_);
  dropSettled(dropped);
}

Result<void> MemoryTracker::checkReads(std::span<const Touched> before, std::span<const Touched> adding) {
  if (failed_.load(std::memory_order_acquire) == 0) return {};
  std::lock_guard lock(mutex_);
  if (const Work* failed = failedRead(before, adding, nextOrder_)) return failedInput(*failed->failure);
  return {};
}

bool MemoryTracker::Work::mayConflict(const Touched& bytes) const {
  constexpr uint32_t kOften = 4;
  if (!index && timesAsked++ >= kOften) {
    try {
      TouchedIndex rebuilt;
      for (const Touched& each : touched) rebuilt.add(each);
      index = std::move(rebuilt);
    } catch (...) {  // the list gives the same answer, more slowly
    }
  }
  if (index) return index->conflicts(bytes);
  return std::any_of(touched.begin(), touched.end(),
                     [&](const Touched& each) { return (each.isWrite || bytes.isWrite) && shareBytes(each, bytes); });
}

bool MemoryTracker::Work::isMarked(const Touched& bytes) const {
  return std::any_of(touched.begin(), touched.end(), [&](const Touched& marked) { return shareBytes(marked, bytes); });
}

// Whether accesses read bytes that this work failed to write, and that no earlier access has written.
bool MemoryTracker::Work::failsReads(std::span<const Touched> before, std::span<const Touched> accesses) const {
  TouchedIndex reads;
  bool mayFail = false;
  for (const Touched& access : accesses) {
    if (access.isWrite || !mayConflict(access)) continue;
    if (hasManyRows(access)) {
      if (isMarked(access)) return true;
      continue;
    }
    reads.add(access);
    mayFail = true;
  }
  if (!mayFail) return false;
  std::map<const void*, IntervalSet> missing;
  for (const Touched& marked : touched) {
    if (!reads.conflicts(marked)) continue;
    IntervalSet& bytes = missing[marked.space];
    forEachRange(marked.region, 0, UINT64_MAX, [&](uint64_t begin, uint64_t end) { bytes.add(begin, end); });
  }
  if (missing.empty()) return false;
  for (const Touched& written : before) removeWritten(missing, written);
  for (const Touched& access : accesses) {
    removeWritten(missing, access);
    const auto space = missing.find(access.space);
    if (!access.isWrite && space != missing.end() && overlapsAny(space->second, access.region)) return true;
  }
  return false;
}

// The work committed before `order` that failed to write what these accesses read, or null.
const MemoryTracker::Work* MemoryTracker::failedRead(std::span<const Touched> before, std::span<const Touched> accesses,
                                                     uint64_t order) const {
  for (const Work& work : works_) {
    if (work.failure && work.order < order && work.failsReads(before, accesses)) return &work;
  }
  return nullptr;
}

// Marks what the work should have written, where the memory still belongs to a buffer. The newest failure is reported.
void MemoryTracker::fail(Work& work, const Error& failure) noexcept {
  std::vector<Touched>& marks = work.touched;
  std::erase_if(marks, [&](const Touched& touched) {
    return !touched.isWrite || !isLiveSince(work.order, {touched.space, touched.region.offset, touched.region.end()});
  });
  for (Touched& touched : marks) {
    if (hasManyRows(touched)) touched = plain({touched.space, touched.region.offset, touched.region.end()});
  }
  work.index.reset();
  clear(marks, work.order);
  work.failure = copyOrCode(failure);
  ++failed_;
}

// Clears bytes from the failures of work committed before `order`. If memory runs out, they stay marked as failed.
void MemoryTracker::clear(std::span<const Touched> written, uint64_t before) noexcept {
  for (Work& work : works_) {
    if (!work.failure || work.order >= before) continue;
    try {
      work.clear(written);
    } catch (...) {  // they stay failed
    }
  }
}

void MemoryTracker::Work::clear(std::span<const Touched> written) {
  struct Bytes {
    ByteRanges marked, taken;
    uint64_t begin = UINT64_MAX, end = 0;
  };
  const auto canClear = [&](const Touched& bytes) { return !hasManyRows(bytes) && mayConflict(asRead(bytes)); };
  TouchedIndex taken;
  bool takesAny = false;
  for (const Touched& bytes : written) {
    if (!canClear(bytes)) continue;
    taken.add(bytes);
    takesAny = true;
  }
  if (!takesAny) return;
  std::map<const void*, Bytes> spaces;
  std::vector<Touched> left;
  for (const Touched& marked : touched) {
    if (!taken.conflicts(asRead(marked))) {
      left.push_back(marked);
      continue;
    }
    Bytes& bytes = spaces[marked.space];
    addBytes(marked.region, bytes.marked);
    bytes.begin = std::min(bytes.begin, marked.region.offset);
    bytes.end = std::max(bytes.end, marked.region.end());
  }
  if (spaces.empty()) return;
  for (const Touched& bytes : written) {
    const auto space = spaces.find(bytes.space);
    if (space == spaces.end() || !canClear(bytes)) continue;
    addBytes(bytes.region, space->second.taken, space->second.begin, space->second.end);
  }
  for (const auto& [space, bytes] : spaces) {
    const ByteRanges rest = bytes.marked.without(bytes.taken);
    for (const auto& range : rest.ranges()) left.push_back(plain({space, range.begin, range.end}));
  }
  touched = std::move(left);
}

bool MemoryTracker::isLiveSince(uint64_t order, const MemoryRange& range) const {
  for (const LiveMemory* memory = live_; memory; memory = memory->next_) {
    if (memory->since_ <= order && memory->range_.overlaps(range)) return true;
  }
  return false;
}

// Forgets failures in bytes that no longer belong to a buffer.
void MemoryTracker::clearUncovered(const MemoryRange& range) noexcept {
  try {
    ByteRanges covered, bytes;
    bytes.add(range.begin, range.end);
    for (const LiveMemory* memory = live_; memory; memory = memory->next_) {
      if (memory->range_.overlaps(range)) covered.add(memory->range_.begin, memory->range_.end);
    }
    const ByteRanges uncovered = bytes.without(covered);
    std::vector<Touched> forgotten;
    for (const auto& left : uncovered.ranges()) forgotten.push_back(plain({range.space, left.begin, left.end}));
    clear(forgotten, nextOrder_);
  } catch (...) {  // they stay failed, until they are written
  }
}

// Removes work that neither runs nor leaves a failure. The caller frees it after releasing the lock.
void MemoryTracker::dropSettled(Works& dropped) noexcept {
  for (auto work = works_.begin(); work != works_.end();) drop(work++, dropped);
}

void MemoryTracker::drop(Works::iterator work, Works& dropped) noexcept {
  if (work->isRunning || (work->failure && !work->touched.empty())) return;
  if (work->failure) --failed_;
  dropped.splice(dropped.end(), works_, work);
  known_.fetch_sub(1, std::memory_order_release);
}

void LiveMemory::begin(const MemoryRange& range) noexcept {
  if (range.begin >= range.end) return;
  MemoryTracker& tracker = MemoryTracker::shared();
  std::lock_guard lock(tracker.mutex_);
  if (tracker.failed_ != 0) tracker.clearUncovered(range);
  range_ = range;
  since_ = tracker.nextOrder_;
  next_ = tracker.live_;
  if (next_) next_->previous_ = this;
  tracker.live_ = this;
  isLinked_ = true;
}

void LiveMemory::end() noexcept {
  if (!isLinked_) return;
  MemoryTracker& tracker = MemoryTracker::shared();
  MemoryTracker::Works dropped;
  std::lock_guard lock(tracker.mutex_);
  (previous_ ? previous_->next_ : tracker.live_) = next_;
  if (next_) next_->previous_ = previous_;
  isLinked_ = false;
  if (tracker.failed_ == 0) return;
  tracker.clearUncovered(range_);
  tracker.dropSettled(dropped);
}

void OpenStep::reserve(std::vector<Touched>& touched, size_t count) {
  if (touched.capacity() - touched.size() >= count) return;
  std::lock_guard lock(MemoryTracker::shared().mutex_);
  touched.reserve(std::max(touched.capacity() * 2, touched.size() + count));
  first_ = touched.data();
}

void OpenStep::publish(const std::vector<Touched>& touched) noexcept {
  if (!isLinked_ && !touched.empty()) {
    MemoryTracker& tracker = MemoryTracker::shared();
    std::lock_guard lock(tracker.mutex_);
    first_ = touched.data();
    thread_ = std::this_thread::get_id();
    previous_ = nullptr;
    next_ = std::exchange(tracker.open_, this);
    if (next_) next_->previous_ = this;
    isLinked_ = true;
    MemoryTracker::known_.fetch_add(1, std::memory_order_release);
  }
  count_.store(touched.size(), std::memory_order_release);
}

void OpenStep::close() noexcept {
  if (!isLinked_) return;
  MemoryTracker& tracker = MemoryTracker::shared();
  std::lock_guard lock(tracker.mutex_);
  unlink(tracker);
}

void OpenStep::unlink(MemoryTracker& tracker) noexcept {
  if (!std::exchange(isLinked_, false)) return;
  (previous_ ? previous_->next_ : tracker.open_) = next_;
  if (next_) next_->previous_ = previous_;
  count_.store(0, std::memory_order_relaxed);
  MemoryTracker::known_.fetch_sub(1, std::memory_order_release);
}

SubmittedWork::SubmittedWork(std::function<WorkProgress()> progress) {
  held_.emplace_back();
  work_ = held_.begin();
  work_->progress = std::move(progress);
}

SubmittedWork::~SubmittedWork() {
  if (!isSubmitted_) return;
  auto ignored = settle(guarded("Device", []() -> Result<void> {
    return makeError(ErrorCode::deviceFault, "Device", "submitted work was dropped", "no outcome",
                     "a device that reports what became of it", "Keep the device until its work is done.");
  }));
  retire();
}

void SubmittedWork::submit(std::vector<Touched>& touched, OpenStep& step) noexcept {
  MemoryTracker& tracker = MemoryTracker::shared();
  std::lock_guard lock(tracker.mutex_);
  step.unlink(tracker);
  std::erase_if(touched, [](const Touched& each) { return each.isScratch; });
  work_->order = tracker.nextOrder_++;
  work_->touched.swap(touched);
  tracker.works_.splice(tracker.works_.end(), held_);
  MemoryTracker::known_.fetch_add(1, std::memory_order_release);
  isSubmitted_ = true;
}

Result<void> SubmittedWork::settle(Result<void> outcome) noexcept {
  MemoryTracker& tracker = MemoryTracker::shared();
  std::lock_guard lock(tracker.mutex_);
  std::optional<Error> first;
  if (outcome && tracker.failed_ != 0) {
    try {
      if (const auto* failed = tracker.failedRead({}, work_->touched, work_->order)) {
        first = copyOrCode(*failed->failure);
        outcome = failedDependence(*first);
      }
    } catch (...) {
      // If memory runs out, assume that the work read failed memory.
      if (!first) first = Error{.code = ErrorCode::outOfMemory, .what = "memory ran out", .retryable = true};
      outcome = copyOrCode(*first);
    }
  }
  if (!outcome) {
    tracker.fail(*work_, first ? *first : outcome.error());
  } else {
    // Successful work only needs its complete writes, to clear failures.
    std::erase_if(work_->touched, [](const Touched& touched) { return !touched.isWhole; });
    if (tracker.failed_ != 0) tracker.clear(work_->touched, work_->order);
  }
  return outcome;
}

void SubmittedWork::retire(const std::function<void()>& beforeWaitersResume) noexcept {
  MemoryTracker& tracker = MemoryTracker::shared();
  MemoryTracker::Works dropped;
  {
    std::lock_guard lock(tracker.mutex_);
    if (beforeWaitersResume) beforeWaitersResume();
    work_->isRunning = false;
    tracker.drop(work_, dropped);
    // Its writes may have cleared what was left of failures.
    if (tracker.failed_ != 0) tracker.dropSettled(dropped);
    isSubmitted_ = false;
  }
  tracker.changed_.notify_all();
}

Result<Summary> Completion::wait() const {
  return guarded("Completion", [&]() -> Result<Summary> {
    if (!state_) {
      return invalidArgument("Completion", "nothing was committed", "an empty completion",
                             "one that an encoder's commit returned",
                             "Commit an encoder and wait for what it returns.");
    }
    std::unique_lock lock(state_->mutex);
    if (!state_->outcome && isInFinishedHandler()) return waitInHandler("Completion");
    state_->changed.wait(lock, [&] { return state_->outcome.has_value(); });
    const Result<Summary>& outcome = *state_->outcome;
    if (!outcome) return copyOrCode(outcome.error());
    return copied(*outcome);
  });
}

bool Completion::isDone() const {
  if (!state_) return false;
  std::lock_guard lock(state_->mutex);
  return state_->outcome.has_value();
}

Summary Completion::summary() const {
  if (!state_) return {};
  std::lock_guard lock(state_->mutex);
  return copied(state_->submitted());
}

std::string Summary::text() const {
  std::string text =
      fmt::format("{}, {}, {} read, {} written", countText(total.dispatches, "dispatch"),
                  countText(barriers, "barrier"), bytesText(total.bytesRead), bytesText(total.bytesWritten));
  if (deviceSeconds > 0) text += ", " + secondsText(deviceSeconds);
  if (!warning.empty()) text += "; warning: " + warning;
  return text;
}

bool isInFinishedHandler() {
  return finishedHandlers != 0;
}
Error waitInHandler(std::string_view op) {
  return makeError(ErrorCode::wouldDeadlock, op, "a handler of finished work cannot wait for other work",
                   "work that is not finished", "work that is finished, such as the handler's own",
                   "Wait on another thread, or read in that work's own handler.");
}
FinishedHandler::FinishedHandler() {
  ++finishedHandlers;
}
FinishedHandler::~FinishedHandler() {
  --finishedHandlers;
}

}  // namespace mnk
