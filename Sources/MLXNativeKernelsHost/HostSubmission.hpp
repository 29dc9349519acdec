// How the Host device runs work: its queue, submissions, and dispatches.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::host {

// A thread that runs submissions in commit order.
class HostQueue {
 public:
  static Result<std::unique_ptr<HostQueue>> make();
  // Finishes queued work. On the queue's own thread, if the last user of a device is a submission, it returns
  // immediately and the thread ends on its own.
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  // The caller passes work as lists that it has allocated, so nothing is allocated here.
  using Work = std::list<std::function<void()>>;
  void push(Work& work) noexcept;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    Work work;
    bool stopping = false;
  };
  HostQueue() = default;
  static void drain(std::shared_ptr<State> state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

// Dispatches that wait to be committed to a device's queue.
class HostSubmission final : public Submission {
 public:
  // The device owns the queue, and lives until the work is done.
  HostSubmission(std::shared_ptr<Device> device, HostQueue& queue, const HostOptions& options, std::string_view label);

  using Submission::dispatch;
  Result<void> dispatch(SharedDispatch shared, std::span<BoundMemory> memory) override;
  void barrier() override;
  void measureOps() override { measuresOps_ = true; }
  Result<void> prepare(std::function<void(SubmissionReport)> finished) override;
  void discardPrepared() noexcept override;
  Result<void> commit() noexcept override;

 private:
  struct Step {
    SharedDispatch shared;
    size_t firstMemory = 0;
  };
  // All dispatches, the memory of their bindings, and the barriers, each as the number of dispatches before it.
  struct Steps {
    std::vector<Step> dispatches;
    std::vector<BoundMemory> memory;
    std::vector<size_t> barriers;
  };
  struct Work;

  std::shared_ptr<Device> device_;
  HostQueue& queue_;
  HostOptions options_;
  std::string label_;  // names the submission in errors
  bool measuresOps_ = false;
  Steps steps_;
  std::shared_ptr<Work> prepared_;
  HostQueue::Work queued_;  // runs the prepared work
};

// Runs one dispatch of a Host device's pipeline to completion. An error names the submission's label.
struct DispatchJob {
  const ReadyDispatch& ready;
  std::span<const BoundMemory> memory;  // of its bindings
  const HostOptions& options;
  std::string_view label;  // of the submission

  HostPipeline& pipeline() const;
  std::string name() const;          // "kernel copy of library tests"
  std::string inSubmission() const;  // " in 'step'", or empty without a label
  std::string op() const;            // the op that errors name
};

Result<void> runDispatch(const DispatchJob& job);

// The steps of runDispatch, for checked and guarded runs.
Arguments bindArguments(const DispatchJob& job);
// `watcher` may be null; with one, the threadgroups run on the calling thread.
Result<void> runThreadgroups(const DispatchJob& job, const Arguments& arguments, const Watcher* watcher);

// Threads that run threadgroups, shared by all Host devices. They are never joined, because work may still be queued
// when the program leaves main.

// Calls body(begin, end) for parts that cover 0 ..< count, on at most `workers` threads including the caller's, and
// returns when all are done. Thread-safe.
void runInParallel(uint64_t count, uint32_t workers, const std::function<void(uint64_t begin, uint64_t end)>& body);

// The number of workers that 0 selects.
uint32_t coreCount();

}  // namespace mnk::host
