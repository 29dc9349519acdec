#include "HostSubmission.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "Checking/CheckedRun.hpp"
#include "Checking/GuardedRun.hpp"
#include "HostPipeline.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk::host {

namespace {

Result<void> runUnder(Checking checking, const DispatchJob& job, std::vector<DispatchTrace>& sinceBarrier) {
  switch (checking) {
    case Checking::off:
      break;
    case Checking::guarded:
      return runGuarded(job);
    case Checking::full:
      return runChecked(job, sinceBarrier);
  }
  return runDispatch(job);
}

}  // namespace

Result<void> HostSubmission::dispatch(ReadyDispatch ready) {
  if (!dynamic_cast<const HostPipeline*>(ready.pipeline.get())) {
    return Error{.op = "Host device",
                 .what = "the pipeline is not of a Host device",
                 .got = ready.dispatch.kernel.text(),
                 .expected = "a pipeline of this device",
                 .fix = "Make the pipeline with the device that runs it."};
  }
  groups_.back().push_back(std::move(ready));
  return {};
}

void HostSubmission::barrier() {
  if (!groups_.back().empty()) groups_.emplace_back();
}

// In one shared object, so that the queue's copy of the work holds the only references.
struct HostSubmission::Work {
  std::shared_ptr<Device> device;
  Options options;
  std::string label;
  std::vector<Group> groups;
  std::function<void(SubmissionReport)> finished;

  Result<void> run() {
    std::minstd_rand random(static_cast<uint32_t>(options.orderSeed));
    for (Group& group : groups) {
      if (options.orderSeed != 0) std::shuffle(group.begin(), group.end(), random);
      std::vector<DispatchTrace> sinceBarrier;
      for (const ReadyDispatch& ready : group) {
        const DispatchJob job{ready, options, label};
        MNK_TRY(runUnder(options.checking, job, sinceBarrier));
      }
    }
    return {};
  }

  void runAndReport() noexcept {
    const auto start = std::chrono::steady_clock::now();
    SubmissionReport report{.outcome = guarded("Host device", [&] { return run(); })};
    report.deviceSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Everything is free again before the caller hears that the work is done.
    groups.clear();
    device.reset();
    try {
      if (finished) finished(std::move(report));
    } catch (...) {  // the caller's code; there is nobody to tell
    }
  }
};

Result<void> HostSubmission::prepare(std::function<void(SubmissionReport)> finished) {
  auto work = std::make_shared<Work>(device_, options_, label_, std::vector<Group>(), std::move(finished));
  HostQueue::Work queued;
  queued.emplace_back([work] { work->runAndReport(); });
  prepared_ = std::move(work);
  queued_ = std::move(queued);
  return {};
}

void HostSubmission::discardPrepared() noexcept {
  prepared_.reset();
  queued_.clear();
}

Result<void> HostSubmission::commit() noexcept {
  prepared_->groups = std::move(groups_);
  prepared_.reset();
  queue_.push(queued_);
  device_.reset();
  return {};
}

}  // namespace mnk::host
