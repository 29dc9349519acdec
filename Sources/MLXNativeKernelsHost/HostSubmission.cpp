#include "HostSubmission.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "Checking/CheckedRun.hpp"
#include "Checking/GuardedRun.hpp"
#include "HostPipeline.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<void> runUnder(HostOptions::Checking checking, const DispatchJob& job,
                      std::vector<DispatchTrace>& sinceBarrier) {
  if (checking == HostOptions::Checking::off) return runDispatch(job);
  const ReadyDispatch whole = withMemory(job.ready, job.memory);
  const DispatchJob checked{whole, job.memory, job.options, job.label};
  return checking == HostOptions::Checking::guarded ? runGuarded(checked) : runChecked(checked, sinceBarrier);
}

}  // namespace

Result<void> HostSubmission::dispatch(SharedDispatch shared, std::span<BoundMemory> memory) {
  if (!dynamic_cast<const HostPipeline*>(shared->pipeline.get())) {
    return Error{.op = "Host device",
                 .what = "the pipeline is not of a Host device",
                 .got = shared->dispatch.kernel.text(),
                 .expected = "a pipeline of this device",
                 .fix = "Make the pipeline with the device that runs it."};
  }
  if (steps_.dispatches.empty()) {  // reserve for some layers
    steps_.dispatches.reserve(64);
    steps_.memory.reserve(1024);
    steps_.barriers.reserve(64);
  }
  const size_t firstMemory = steps_.memory.size();
  steps_.memory.insert(steps_.memory.end(), std::move_iterator(memory.begin()), std::move_iterator(memory.end()));
  steps_.dispatches.push_back({std::move(shared), firstMemory});
  return {};
}

void HostSubmission::barrier() {
  const size_t before = steps_.dispatches.size();
  if (before > (steps_.barriers.empty() ? 0 : steps_.barriers.back())) steps_.barriers.push_back(before);
}

// One shared object, so that the queue's copy of the work holds the only references.
struct HostSubmission::Work {
  std::shared_ptr<Device> device;
  HostOptions options;
  std::string label;
  std::map<std::string, double> opSeconds;  // has all ops if they are measured
  Steps steps;
  std::function<void(SubmissionReport)> finished;

  Result<void> run() {
    std::minstd_rand random(static_cast<uint32_t>(options.orderSeed));
    steps.barriers.push_back(steps.dispatches.size());
    const std::span<Step> all = steps.dispatches;
    size_t begin = 0;
    for (const size_t end : steps.barriers) {
      const auto group = all.subspan(begin, end - begin);
      if (options.orderSeed != 0) std::shuffle(group.begin(), group.end(), random);
      std::vector<DispatchTrace> sinceBarrier;
      for (const auto& [shared, firstMemory] : group) {
        const auto memory = std::span<const BoundMemory>(steps.memory).subspan(firstMemory);
        const DispatchJob job{*shared, memory.first(shared->dispatch.buffers.size()), options, label};
        const auto start = Clock::now();
        MNK_TRY(runUnder(options.checking, job, sinceBarrier));
        if (const auto sum = opSeconds.find(shared->dispatch.kind); sum != opSeconds.end()) {
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
    // Release everything before reporting that the work is done.
    steps = {};
    device.reset();
    try {
      if (finished) finished(std::move(report));
    } catch (...) {  // the caller's code; there is no one to report to
    }
  }
};

Result<void> HostSubmission::prepare(std::function<void(SubmissionReport)> finished) {
  std::map<std::string, double> opSeconds;
  for (const Step& step : steps_.dispatches) {
    if (measuresOps_) opSeconds.try_emplace(step.shared->dispatch.kind, 0);
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
