// Dispatches that wait to be committed to a device's queue.
#pragma once
#include "HostQueue.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

class HostSubmission final : public Submission {
 public:
  // The device owns the queue, and lives until the work is done.
  HostSubmission(std::shared_ptr<Device> device, HostQueue& queue, const HostOptions& options, std::string_view label)
      : device_(std::move(device)), queue_(queue), options_(options), label_(label) {}

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

}  // namespace mnk::host
