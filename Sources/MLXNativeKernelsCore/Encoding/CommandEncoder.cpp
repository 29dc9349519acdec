#include "MLXNativeKernels/CommandEncoder.hpp"

#include "Encoding/Completion.hpp"
#include "Encoding/DispatchRules.hpp"
#include "Encoding/HazardTracker.hpp"
#include "Encoding/ThreadgroupShape.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"

namespace mnk {

namespace {

constexpr std::string_view kOp = "CommandEncoder";

}  // namespace

struct CommandEncoder::Impl {
  struct Participation {
    const void* key;
    std::shared_ptr<EncodingParticipant> participant;
  };

  std::shared_ptr<Device> device;
  std::string label;
  std::unique_ptr<Submission> submission;  // made by the first use
  HazardTracker hazards;
  Summary summary;
  std::vector<Participation> participants;
  bool isCommitted = false;
  bool isMidway = false;         // the submission holds something that is not accounted for
  std::optional<Error> failure;  // why the submission holds part of a call; it must not run

  Result<void> open();
  Result<ReadyDispatch> prepare(const Dispatch& dispatch, const std::shared_ptr<Buffer>& scratch) const;
  Result<void> record(ReadyDispatch ready);
  Result<void> encode(std::span<const Dispatch> dispatches, uint64_t scratchBytes);
  Result<void> advance();
};

// Whether the encoder can still record; makes the submission.
Result<void> CommandEncoder::Impl::open() {
  if (!device) {
    return Error{.op = std::string(kOp),
                 .what = "the encoder has no device",
                 .got = "a null device",
                 .expected = "a device",
                 .fix = "Make one with Device::makeDefault and pass it to the encoder."};
  }
  if (isCommitted) {
    return Error{.op = std::string(kOp),
                 .what = "the encoder is used after it was committed",
                 .got = "a committed encoder",
                 .expected = "an encoder that still records",
                 .fix = "Make a new encoder for further work."};
  }
  if (failure) return *failure;
  if (submission) return {};
  auto made = device->makeSubmission(label);
  if (!made) return std::move(made).error();
  submission = std::move(*made);
  return {};
}

// Looks up the pipeline, checks every rule and settles the threadgroup size. Changes nothing.
Result<ReadyDispatch> CommandEncoder::Impl::prepare(const Dispatch& dispatch,
                                                    const std::shared_ptr<Buffer>& scratch) const {
  auto pipeline = device->registry().pipeline(dispatch.kernel);
  if (!pipeline) return std::move(pipeline).error();

  ReadyDispatch ready{.dispatch = dispatch, .pipeline = *pipeline, .threadgroup = dispatch.grid.threadgroup};
  for (Binding& binding : ready.dispatch.buffers) {
    if (!binding.buffer) binding.buffer = scratch;
  }
  for (ThreadgroupMemory& memory : ready.dispatch.threadgroupMemory) {
    constexpr uint32_t kUnit = 16;  // some devices take multiples of it only
    if (memory.bytes <= UINT32_MAX - kUnit) memory.bytes = (memory.bytes + kUnit - 1) / kUnit * kUnit;
  }
  const DispatchCheck check{.dispatch = ready.dispatch, .device = *device, .pipeline = **pipeline};
  if (auto error = firstBroken(dispatchRules(), check, dispatch.kind.empty() ? kOp : dispatch.kind)) return *error;
  if (ready.threadgroup == Size3{0, 0, 0}) {
    ready.threadgroup = threadgroupFor(dispatch.grid.extent, (*pipeline)->maxThreadsPerThreadgroup());
  }
  return ready;
}

Result<void> CommandEncoder::Impl::record(ReadyDispatch ready) {
  const std::vector<Binding> buffers = ready.dispatch.buffers;
  const Summary::Counts counts{.dispatches = 1,
                               .bytesRead = ready.dispatch.countedBytesRead(),
                               .bytesWritten = ready.dispatch.countedBytesWritten()};
  const std::string kind = ready.dispatch.kind;
  if (hazards.conflicts(buffers)) {
    isMidway = true;
    submission->barrier();
    hazards.clear();
    ++summary.barriers;
  }
  if (auto recorded = submission->dispatch(std::move(ready)); !recorded) return recorded;
  isMidway = true;
  hazards.add(buffers);
  for (Summary::Counts* sum : {&summary.total, &summary.kinds[kind]}) {
    sum->dispatches += counts.dispatches;
    sum->bytesRead += counts.bytesRead;
    sum->bytesWritten += counts.bytesWritten;
  }
  isMidway = false;
  return {};
}

Result<void> CommandEncoder::Impl::encode(std::span<const Dispatch> dispatches, uint64_t scratchBytes) {
  if (auto opened = open(); !opened) return opened;
  std::shared_ptr<Buffer> scratch;
  if (scratchBytes != 0) {
    auto made = device->makeBuffer(scratchBytes);
    if (!made) return std::move(made).error();
    scratch = std::move(*made);
  }
  // All are prepared before the first is recorded, so that a plan is recorded whole or not at all.
  std::vector<ReadyDispatch> ready;
  for (const Dispatch& dispatch : dispatches) {
    auto prepared = prepare(dispatch, scratch);
    if (!prepared) return std::move(prepared).error();
    if (!dispatch.grid.isEmpty()) ready.push_back(std::move(*prepared));
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    auto recorded = guarded(kOp, [&] { return record(std::move(ready[i])); });
    if (recorded) continue;
    if (i != 0 || isMidway) failure = recorded.error();
    return recorded;
  }
  return {};
}

// Advances every participant, or none.
Result<void> CommandEncoder::Impl::advance() {
  for (size_t i = 0; i < participants.size(); ++i) {
    auto advanced = participants[i].participant->advance();
    if (advanced) continue;
    while (i > 0) participants[--i].participant->retreat();
    return advanced;
  }
  return {};
}

CommandEncoder::CommandEncoder(std::shared_ptr<Device> device, std::string label) : impl_(std::make_unique<Impl>()) {
  impl_->device = std::move(device);
  impl_->label = std::move(label);
}
CommandEncoder::CommandEncoder(std::shared_ptr<Device> device, std::unique_ptr<Submission> into)
    : CommandEncoder(std::move(device)) {
  impl_->submission = std::move(into);
}
CommandEncoder::~CommandEncoder() = default;

Result<void> CommandEncoder::encode(const Plan& plan) {
  return guarded(plan.op, [&] { return impl_->encode(plan.dispatches, plan.scratchBytes); });
}

Result<void> CommandEncoder::dispatch(const Dispatch& dispatch) {
  return guarded(kOp, [&] { return impl_->encode({&dispatch, 1}, 0); });
}

Result<void> CommandEncoder::barrier() {
  return guarded(kOp, [&]() -> Result<void> {
    if (auto opened = impl_->open(); !opened) return opened;
    impl_->submission->barrier();
    impl_->hazards.clear();
    ++impl_->summary.barriers;
    return {};
  });
}

Result<Completion> CommandEncoder::commit(Finished finished) {
  return guarded(kOp, [&]() -> Result<Completion> {
    if (auto opened = impl_->open(); !opened) return std::move(opened).error();
    Completion completion;
    completion.state_ = std::make_shared<Completion::State>();
    completion.state_->summary = impl_->summary;
    // Everything that can run out of memory is made before the first participant advances.
    auto whenFinished = [state = completion.state_, participants = impl_->participants,
                         finished = std::move(finished)](const SubmissionReport& report) {
      for (const auto& joined : participants) joined.participant->finished(report.outcome);
      state->finish(report.outcome, report.deviceSeconds);
      if (!finished) return;
      try {
        finished(state->report());
      } catch (...) {
        // The caller's exception has nowhere to go on a thread of the device.
      }
    };
    std::function<void(SubmissionReport)> handler = std::move(whenFinished);
    if (auto advanced = impl_->advance(); !advanced) return std::move(advanced).error();
    impl_->isCommitted = true;
    impl_->participants.clear();
    try {
      std::exchange(impl_->submission, nullptr)->commit(handler);
    } catch (const std::exception& exception) {
      // Participants have advanced, so the failure reaches them and the waiters as one of the device would.
      handler({.outcome = outOfMemory(kOp, exception.what())});
    }
    return completion;
  });
}

const Summary& CommandEncoder::summary() const {
  return impl_->summary;
}
const std::shared_ptr<Device>& CommandEncoder::device() const {
  return impl_->device;
}

std::shared_ptr<EncodingParticipant> CommandEncoder::participant(const void* key) const {
  for (const auto& joined : impl_->participants) {
    if (joined.key == key) return joined.participant;
  }
  return nullptr;
}

Result<void> CommandEncoder::join(const void* key, std::shared_ptr<EncodingParticipant> participant) {
  return guarded(kOp, [&]() -> Result<void> {
    if (auto opened = impl_->open(); !opened) return opened;
    if (!participant) {
      return Error{.op = std::string(kOp),
                   .what = "there is no participant to join",
                   .got = "null",
                   .expected = "a participant",
                   .fix = "Pass an object that follows the encoder."};
    }
    impl_->participants.push_back({key, std::move(participant)});
    return {};
  });
}

}  // namespace mnk
