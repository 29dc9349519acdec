// Knows which bytes submitted work may still touch, and which bytes hold nothing because the work that was to write
// them failed. There is one for the process, because buffers of several devices may share memory.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "Runtime/HazardTracker.hpp"

namespace mnk {

// Memory that a buffer covers. Failures are kept for such memory alone: its addresses may become something else after.
class LiveMemory {
 public:
  LiveMemory() = default;
  ~LiveMemory() { end(); }
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  void begin(const MemoryRange& range) noexcept;
  // Before the memory is released.
  void end() noexcept;

 private:
  friend class MemoryTracker;
  MemoryRange range_;
  LiveMemory* previous_ = nullptr;
  LiveMemory* next_ = nullptr;
  uint64_t since_ = 0;  // work of a lower order never touched it
  bool isLinked_ = false;
};

class MemoryTracker {
 public:
  static MemoryTracker& shared();  // never destroyed: devices finish work while the process ends

  // Nothing is under way and nothing has failed, so that there is nothing to wait for or to report.
  static bool isIdle() { return knownWorks() == 0; }
  static uint64_t knownWorks() { return known_.load(std::memory_order_acquire); }

  // Waits for work committed before this call that writes these bytes, and reports the failure of what was to write
  // them.
  Result<void> waitToRead(const MemoryRange& bytes) { return wait(bytes, false); }
  // Waits for work committed before this call that reads or writes these bytes.
  Result<void> waitToWrite(const MemoryRange& bytes) { return wait(bytes, true); }
  // The processor has written these bytes.
  void written(const MemoryRange& bytes) noexcept;

  // The failure of work that was to write bytes which `adding` reads. Bytes that `before` or `adding` itself has
  // written by then are fine.
  Result<void> checkReads(std::span<const Touched> before, std::span<const Touched> adding);

 private:
  friend class LiveMemory;
  friend class SubmittedWork;
  struct Work {
    uint64_t order = 0;  // of its commit
    // In the order it was recorded; once failed: what was to be written and is not yet.
    std::vector<Touched> touched;
    std::function<WorkProgress()> progress;
    bool isRunning = true;
    std::optional<Error> failure;  // the first one, where failed work makes later work fail

    // Whether these bytes meet what the work touches; false is certain.
    bool mayConflict(const Touched& bytes) const;
    // Once it has failed: whether it was to write some of these bytes, and nothing has since.
    bool isMarked(const Touched& bytes) const;
    bool failsReads(std::span<const Touched> before, std::span<const Touched> accesses) const;
    void clear(std::span<const Touched> written);

   private:
    friend class MemoryTracker;
    // Most work is asked about once or not at all: the index is made when it is asked about more often. It may know
    // bytes that were cleared since.
    mutable std::optional<TouchedIndex> index;
    mutable uint32_t timesAsked = 0;
  };
  using Works = std::list<Work>;

  Result<void> wait(const MemoryRange& bytes, bool toWrite);
  const Work* failedRead(std::span<const Touched> before, std::span<const Touched> accesses, uint64_t order) const;
  void fail(Work& work, const Error& failure) noexcept;
  void clear(std::span<const Touched> written, uint64_t before) noexcept;
  void clearUncovered(const MemoryRange& range) noexcept;
  bool isLiveSince(uint64_t order, const MemoryRange& range) const;
  void dropSettled(Works& dropped) noexcept;
  void drop(Works::iterator work, Works& dropped) noexcept;

  static std::atomic<uint64_t> known_;  // the length of works_

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // some work is not running any more
  Works works_;                      // running or failed, in the order they were committed
  uint64_t nextOrder_ = 1;
  std::atomic<uint64_t> failed_ = 0;  // how many of them have failed
  LiveMemory* live_ = nullptr;
};

// The work of one encoder: made before it is committed, and held by whatever will report its outcome.
class SubmittedWork {
 public:
  explicit SubmittedWork(std::function<WorkProgress()> progress);
  // Work that was submitted and never retired has failed: its device dropped it.
  ~SubmittedWork();
  SubmittedWork(const SubmittedWork&) = delete;
  SubmittedWork& operator=(const SubmittedWork&) = delete;

  // From now on others wait for it. Takes what it touches.
  void submit(std::vector<Touched>& touched) noexcept;

  // What became of it: also a failure where it read what failed work was to write. What it was to write is known to
  // hold nothing, or to be there again.
  Result<void> settle(Result<void> outcome) noexcept;
  // Others wait no longer.
  void retire(const std::function<void()>& beforeWaitersResume = {}) noexcept;

 private:
  MemoryTracker::Works held_;  // its entry, while it is not submitted
  MemoryTracker::Works::iterator work_;
  bool isSubmitted_ = false;
};

}  // namespace mnk
