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

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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
  std::map<std::string, double> opSeconds;  // has all kinds if they are measured
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
        const auto start = Clock::now();
        MNK_TRY(runUnder(options.checking, job, sinceBarrier));
        if (const auto sum = opSeconds.find(ready.dispatch.kind); sum != opSeconds.end()) {
          sum->second += secondsSince(start);
        }
      }
      begin = end;
    }
    return {};
  }

  void runAndReport() noexcept {
    const auto start = Clock::now();
    SubmissionReport report{.outcome = guarded("Host device", [&] { return run(); })};
    report.deviceSeconds = secondsSince(start);
    report.opSeconds = std::move(opSeconds);
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
  std::map<std::string, double> opSeconds;
  for (const ReadyDispatch& ready : steps_.dispatches) {
    if (measuresOps_) opSeconds.try_emplace(ready.dispatch.kind, 0);
  }
  auto work = std::make_shared<Work>(device_, options_, label_, std::move(opSeconds), Steps(), std::move(finished));
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
