#include "HostSubmission.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <random>

#include "Devices/Host/Checking/CheckedRun.hpp"
#include "Devices/Host/Checking/GuardedRun.hpp"
#include "Devices/Host/HostPipeline.hpp"

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

Result<void> HostSubmission::run(std::vector<Group>& groups, const Options& options, std::string_view label) {
  std::minstd_rand random(static_cast<uint32_t>(options.orderSeed));
  for (Group& group : groups) {
    if (options.orderSeed != 0) std::shuffle(group.begin(), group.end(), random);
    std::vector<DispatchTrace> sinceBarrier;
    for (const ReadyDispatch& ready : group) {
      const DispatchJob job{ready, options, label};
      if (auto outcome = runUnder(options.checking, job, sinceBarrier); !outcome) return outcome;
    }
  }
  return {};
}

void HostSubmission::commit(std::function<void(SubmissionReport)> finished) {
  // In one shared object, so that the queue's copy of the work holds the only references.
  struct Work {
    std::shared_ptr<Device> device;
    Options options;
    std::string label;
    std::vector<Group> groups;
    std::function<void(SubmissionReport)> finished;
  };
  auto work =
      std::make_shared<Work>(std::move(device_), options_, std::move(label_), std::move(groups_), std::move(finished));
  queue_.push([work = std::move(work)] {
    const auto start = std::chrono::steady_clock::now();
    SubmissionReport report;
    try {
      report.outcome = run(work->groups, work->options, work->label);
    } catch (const std::exception& exception) {
      report.outcome = Error{.code = ErrorCode::outOfMemory,
                             .op = "Host device",
                             .what = "the submission could not be run",
                             .got = exception.what(),
                             .expected = "memory for its work",
                             .fix = "Free memory and try again.",
                             .retryable = true};
    }
    report.deviceSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // Everything is free again before the caller hears that the work is done.
    work->groups.clear();
    work->device.reset();
    try {
      if (work->finished) work->finished(std::move(report));
    } catch (...) {  // the caller's code; there is nobody to tell
    }
  });
}

}  // namespace mnk::host
