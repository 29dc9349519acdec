// Work that was encoded or submitted, and the memory that it uses: which bytes it may still touch, and how it ends.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "Runtime/HazardTracker.hpp"
#include "Support/Errors.hpp"

namespace mnk {

// Runs a function once: in `run` or on destruction. Releases memory that a call takes over even if the call fails
// before an object owns it.
class Releasing {
 public:
  explicit Releasing(std::function<void()> release) noexcept : release_(std::move(release)) {}
  Releasing(Releasing&& other) noexcept : release_(std::exchange(other.release_, nullptr)) {}
  Releasing& operator=(Releasing&&) = delete;
  ~Releasing() { run(); }

  void run() noexcept {
    const auto release = std::exchange(release_, nullptr);
    if (!release) return;
    try {
      release();
    } catch (...) {  // the caller's code; there is no one to report to
    }
  }

 private:
  std::function<void()> release_;
};

// Tracks which bytes submitted work may still touch, and which bytes are undefined because the work that should have
// written them failed. There is one tracker per process, because buffers of several devices may share memory.
class MemoryTracker;

// Memory that belongs to a buffer. Failures are recorded only for such memory, because its addresses may be reused
// later.
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
  uint64_t since_ = 0;  // work with a lower order cannot have touched it
  bool isLinked_ = false;
};

// What an encoder has recorded and not committed. Any thread can ask whether bytes are part of it, while the encoder
// records without a lock: published accesses do not change or move before the next lock.
class OpenStep {
 public:
  OpenStep() = default;
  ~OpenStep() { close(); }
  OpenStep(const OpenStep&) = delete;
  OpenStep& operator=(const OpenStep&) = delete;

  // Makes room for `count` more accesses.
  void reserve(std::vector<Touched>& touched, size_t count);
  // All of `touched` is recorded.
  void publish(const std::vector<Touched>& touched) noexcept;
  // Nothing of it is recorded any more.
  void close() noexcept;

 private:
  friend class MemoryTracker;
  friend class SubmittedWork;
  void unlink(MemoryTracker& tracker) noexcept;

  const Touched* first_ = nullptr;  // under the tracker's lock
  std::atomic<size_t> count_ = 0;
  OpenStep* previous_ = nullptr;
  OpenStep* next_ = nullptr;
  std::thread::id thread_;  // that recorded first
  bool isLinked_ = false;
};

class MemoryTracker {
 public:
  static MemoryTracker& shared();  // never destroyed: devices finish work while the process ends

  // Whether no step is open, no work is in flight and none has failed, so that there is nothing to wait for or to
  // report.
  static bool isIdle() { return knownWorks() == 0; }
  static uint64_t knownWorks() { return known_.load(std::memory_order_acquire); }

  // Waits for work committed before this call that writes these bytes. Returns the failure of work that should have
  // written them, or an error if an open step writes them.
  Result<void> waitToRead(const MemoryRange& bytes) { return wait(bytes, false, true); }
  // The same, for bytes as they are before open steps run.
  Result<void> waitToReadCommitted(const MemoryRange& bytes) { return wait(bytes, false, false); }
  // Waits for work committed before this call that reads or writes these bytes. Returns an error if an open step reads
  // or writes them.
  Result<void> waitToWrite(const MemoryRange& bytes) { return wait(bytes, true, true); }
  // An error if work is to run before another step that this thread has opened, and writes what that step uses or reads
  // what it writes. `own` is the step of the work.
  Result<void> checkOrder(std::span<const Touched> touched, const OpenStep& own) const;
  // Call after the CPU has written these bytes.
  void written(const MemoryRange& bytes) noexcept;

  // Returns the failure of work that should have written bytes which `adding` reads. Bytes that `before` or `adding`
  // itself writes first are not checked.
  Result<void> checkReads(std::span<const Touched> before, std::span<const Touched> adding);

 private:
  friend class LiveMemory;
  friend class OpenStep;
  friend class SubmittedWork;
  struct Work {
    uint64_t order = 0;  // of its commit
    // Accesses in recording order. After a failure: the writes that are still missing.
    std::vector<Touched> touched;
    std::function<WorkProgress()> progress;
    bool isRunning = true;
    std::optional<Error> failure;  // the original one, if earlier failed work caused it

    // Whether these bytes may conflict with what the work touches. Conservative: false is certain.
    bool mayConflict(const Touched& bytes) const;
    // After a failure: whether some of these bytes should have been written by this work and have not been written
    // since.
    bool isMarked(const Touched& bytes) const;
    bool failsReads(std::span<const Touched> before, std::span<const Touched> accesses) const;
    void clear(std::span<const Touched> written);

   private:
    friend class MemoryTracker;
    // Most work is queried at most once, so the index is built only after several queries. It may still contain bytes
    // that were cleared since.
    mutable std::optional<TouchedIndex> index;
    mutable uint32_t timesAsked = 0;
  };
  using Works = std::list<Work>;

  Result<void> wait(const MemoryRange& bytes, bool toWrite, bool refusesOpen);
  // Whether an open step writes these bytes, or, if they are to be written, also reads them.
  bool isInOpenStep(const Touched& bytes) const;
  const Work* failedRead(std::span<const Touched> before, std::span<const Touched> accesses, uint64_t order) const;
  void fail(Work& work, const Error& failure) noexcept;
  void clear(std::span<const Touched> written, uint64_t before) noexcept;
  void clearUncovered(const MemoryRange& range) noexcept;
  bool isLiveSince(uint64_t order, const MemoryRange& range) const;
  void dropSettled(Works& dropped) noexcept;
  void drop(Works::iterator work, Works& dropped) noexcept;

  static std::atomic<uint64_t> known_;  // the length of works_, and the number of open steps

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // some work is not running any more
  Works works_;                      // running or failed, in the order they were committed
  uint64_t nextOrder_ = 1;
  std::atomic<uint64_t> failed_ = 0;  // how many of them have failed
  LiveMemory* live_ = nullptr;
  OpenStep* open_ = nullptr;
};

// The work of one encoder. It is created before the commit and owned by the object that reports its outcome.
class SubmittedWork {
 public:
  explicit SubmittedWork(std::function<WorkProgress()> progress);
  // Work that was submitted and never retired has failed: its device dropped it.
  ~SubmittedWork();
  SubmittedWork(const SubmittedWork&) = delete;
  SubmittedWork& operator=(const SubmittedWork&) = delete;

  // Registers the work, so that other calls wait for it. Takes ownership of `touched`, which `step` has published.
  void submit(std::vector<Touched>& touched, OpenStep& step) noexcept;

  // Settles the outcome. It becomes a failure if the work read memory that failed work should have written. Then marks
  // the bytes it should have written as undefined, or clears earlier marks on success.
  Result<void> settle(Result<void> outcome) noexcept;
  // Ends the work; waiting calls resume.
  void retire(const std::function<void()>& beforeWaitersResume = {}) noexcept;

 private:
  MemoryTracker::Works held_;  // its entry, while it is not submitted
  MemoryTracker::Works::iterator work_;
  bool isSubmitted_ = false;
};

// The error for memory of a command buffer that the app has not committed.
Error notCommitted(bool toWrite);

// State that a Completion shares with the device thread that finishes the work.
struct Completion::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  Summary summary;  // moves into the outcome of work that succeeds
  std::optional<Result<Summary>> outcome;

  void finish(Result<void> result, const SubmissionReport& report) noexcept {
    {
      std::lock_guard lock(mutex);
      summary.deviceSeconds = report.deviceSeconds;
      for (const auto& [kind, seconds] : report.opSeconds) {
        const auto counts = summary.kinds.find(kind);
        if (counts == summary.kinds.end()) continue;
        counts->second.deviceSeconds = seconds;
        summary.total.deviceSeconds += seconds;
      }
      if (result) {
        outcome.emplace(std::move(summary));
      } else {
        outcome.emplace(std::move(result).error());
      }
    }
    changed.notify_all();
  }

  const Summary& submitted() const { return outcome && *outcome ? **outcome : summary; }
};

// Whether this thread is inside a completion handler, for which the device may be waiting.
bool isInFinishedHandler();
// The error for a wait for unfinished work inside a handler.
Error waitInHandler(std::string_view op);

// Marks the thread as inside a completion handler during its lifetime.
class FinishedHandler {
 public:
  FinishedHandler();
  ~FinishedHandler();
  FinishedHandler(const FinishedHandler&) = delete;
  FinishedHandler& operator=(const FinishedHandler&) = delete;
};

// The newest failure of a device's work. It is separate from the device, so that handlers do not retain the device.
class FailureLog {
 public:
  void record(const Error& failure) noexcept {
    std::lock_guard lock(mutex_);
    last_ = copyOrCode(failure);
  }
  std::optional<Error> last() const noexcept {
    std::lock_guard lock(mutex_);
    return last_ ? std::optional(copyOrCode(*last_)) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> last_;
};

}  // namespace mnk
