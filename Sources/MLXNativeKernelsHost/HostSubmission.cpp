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
  if (steps_.dispatches.empty()) steps_.dispatches.reserve(64);  // of some layers
  steps_.dispatches.push_back(std::move(ready));
  return {};
}

void HostSubmission::barrier() {
  const size_t before = steps_.dispatches.size();
  if (before > (steps_.barriers.empty() ? 0 : steps_.barriers.back())) steps_.barriers.push_back(before);
}

// In one shared object, so that the queue's copy of the work holds the only references.
struct HostSubmission::Work {
  std::shared_ptr<Device> device;
  Options options;
  std::string label;
  Steps steps;
  std::function<void(SubmissionReport)> finished;

  Result<void> run() {
    std::minstd_rand random(static_cast<uint32_t>(options.orderSeed));
    steps.barriers.push_back(steps.dispatches.size());
    std::span<ReadyDispatch> all = steps.dispatches;
    size_t begin = 0;
    for (const size_t end : steps.barriers) {
      const auto group = all.subspan(begin, end - begin);
      if (options.orderSeed != 0) std::shuffle(group.begin(), group.end(), random);
      std::vector<DispatchTrace> sinceBarrier;
      for (const ReadyDispatch& ready : group) {
        const DispatchJob job{ready, options, label};
        MNK_TRY(runUnder(options.checking, job, sinceBarrier));
      }
      begin = end;
    }
    return {};
  }

  void runAndReport() noexcept {
    const auto start = std::chrono::steady_clock::now();
    SubmissionReport report{.outcome = guarded("Host device", [&] { return run(); })};
    report.deviceSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Everything is free again before the caller hears that the work is done.
    steps.recycleAll();
    device.reset();
    try {
      if (finished) finished(std::move(report));
    } catch (...) {  // the caller's code; there is nobody to tell
    }
  }
};

Result<void> HostSubmission::prepare(std::function<void(SubmissionReport)> finished) {
  auto work = std::make_shared<Work>(device_, options_, label_, Steps(), std::move(finished));
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
  prepared_->steps = std::move(steps_);
  prepared_.reset();
  queue_.push(queued_);
  device_.reset();
  return {};
}

}  // namespace mnk::host
