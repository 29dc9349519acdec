#include "MLXNativeKernels/CommandEncoder.hpp"

#include <algorithm>

#include "Runtime/CommandEncoderImpl.hpp"
#include "Runtime/DispatchRules.hpp"
#include "Runtime/ScratchPool.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr std::string_view kEncoderName = "CommandEncoder";

Error pastScratch(const Binding& binding, uint64_t bytes) {
  return invalidArgument(
      kEncoderName, "a binding reaches past the plan's scratch memory",
      fmt::format("{} at byte {} for index {}", countText(binding.length, "byte"), binding.offset, binding.index),
      fmt::format("a range inside {}", countText(bytes, "byte")), "Increase Plan::scratchBytes.");
}

// A device has every kernel of this package that it chooses for its own plans.
Error unplanned(const std::shared_ptr<Device>& device, const Plan& plan, Error error) {
  if (error.code != ErrorCode::shaderBuild) return error;
  const auto shipped = device->registry().shippedLibrary();
  if (!shipped) return error;
  const std::vector<std::string> names = (*shipped)->functionNames();
  for (const Dispatch& dispatch : plan.dispatches) {
    const std::string& function = dispatch.kernel.function;
    if (dispatch.kernel.library || std::find(names.begin(), names.end(), function) != names.end()) continue;
    return makeError(ErrorCode::unsupported, plan.op, "the plan was made for another device",
                     fmt::format("kernel {}, which {} does not have", function, device->name()),
                     "a plan for the device of the encoder",
                     "Pass the device to the call that makes the plan, or encode the op instead of a plan.");
  }
  return error;
}

}  // namespace

// Runs when the device has finished the work. Does not allocate.
struct CommandEncoder::Impl::CompletionTask {
  std::shared_ptr<Completion::State> state;
  std::optional<SubmittedWork> work;
  std::shared_ptr<FailureLog> failures;
  std::vector<Participation> participants;
  Finished finished;

  void run(SubmissionReport report) noexcept {
    const FinishedHandler handler;
    auto outcome = work->settle(std::move(report.outcome));
    if (!outcome) failures->record(outcome.error());
    for (const Participation& joined : participants) joined.participant->finished(outcome);
    // Completes the state before waiters resume: handlers and waiters then read the results of this work without
    // waiting.
    const auto finish = [&]() noexcept { state->finish(std::move(outcome), report); };
    work->retire(std::ref(finish));
    if (!finished) return;
    try {
      finished(*state->outcome);
    } catch (...) {
      // A device thread has no caller to which the handler's exception could propagate.
    }
  }
};

// Checks that the encoder can still record, and creates the submission on first use.
Result<void> CommandEncoder::Impl::open() {
  if (!device) {
    return invalidArgument(kEncoderName, "the encoder has no device", "a null device", "a device",
                           "Make one with Device::makeDefault and pass it to the encoder.");
  }
  if (isCommitted) {
    return invalidArgument(kEncoderName, "the encoder is used after it was committed", "a committed encoder",
                           "an encoder that still records", "Make a new encoder for further work.");
  }
  if (failure) return *failure;
  if (submission) return {};
  MNK_TRY(auto created, device->makeSubmission(label));
  // Enough for one or two layers, to avoid repeated growth.
  participants.reserve(32);
  ready.reserve(8);
  memory.reserve(64);
  touched.reserve(512);
  submission = std::move(created);
  return {};
}

// Looks up the pipeline, checks all rules and determines the threadgroup size. Does not modify the encoder.
Result<CountedDispatch> CommandEncoder::Impl::prepare(const Dispatch& dispatch, const PlanScratch& acquired) const {
  MNK_TRY(auto pipeline, device->registry().pipeline(dispatch.kernel));

  CountedDispatch ready;
  ready.dispatch = dispatch;
  ready.pipeline = pipeline;
  const uint32_t maxThreads = pipeline->maxThreadsPerThreadgroup();
  ready.dispatch.grid = shrinkToLimit(maxThreads, dispatch.grid);
  const Size3& threadgroup = ready.dispatch.grid.threadgroup;
  for (Binding& binding : ready.dispatch.buffers) {
    if (binding.buffer) continue;
    const ScratchRange& memory = binding.isZeroed ? acquired.zeroed : acquired.scratch;
    if (memory.buffer && !fits(binding.offset, binding.length, memory.bytes)) return pastScratch(binding, memory.bytes);
    if (memory.buffer) binding.buffer = *memory.buffer;
    binding.offset += memory.start;
  }
  const DispatchCheck check{.dispatch = ready.dispatch, .device = *device, .pipeline = *pipeline};
  MNK_TRY(checkRules(dispatchRules(), check, dispatch.kind.empty() ? kEncoderName : dispatch.kind));
  const bool isOpen = threadgroup == Size3{0, 0, 0};
  ready.threadgroup = isOpen ? threadgroupFor(dispatch.grid.extent, maxThreads) : threadgroup;
  ready.count();
  return ready;
}

Result<void> CommandEncoder::Impl::record(const std::shared_ptr<const CountedDispatch>& next,
                                          std::span<BoundMemory> memory, std::span<const Touched> accesses) {
  if (hazards.conflicts(accesses)) {
    isMidway = true;
    submission->barrier();
    hazards.clear();
    ++summary.barriers;
  }
  MNK_TRY(submission->dispatch(next, memory));
  isMidway = true;
  for (const Touched& access : accesses) hazards.add(access);
  for (Summary::Counts* sum : {&summary.total, &summary.kinds[next->dispatch.kind]}) {
    ++sum->dispatches;
    sum->bytesRead += next->bytesRead;
    sum->bytesWritten += next->bytesWritten;
  }
  isMidway = false;
  return {};
}

Result<CommandEncoder::Impl::ScratchRange> CommandEncoder::Impl::acquire(uint64_t bytes) {
  if (bytes == 0) return ScratchRange{};
  if (!scratch || scratch->length() < bytes) {
    MNK_TRY(auto acquired, device->scratch().acquire(device, bytes));
    scratch = std::move(acquired);
  }
  return ScratchRange{&scratch, 0, bytes};
}

// Allocates zeroed bytes that no other plan of this encoder uses. Zeroing them on the CPU is safe, because a buffer
// returns to the pool only after its last work has finished.
Result<CommandEncoder::Impl::ScratchRange> CommandEncoder::Impl::acquireZeroed(uint64_t bytes) {
  if (bytes == 0) return ScratchRange{};
  if (!zeroed || zeroed->length() - zeroedUsed < bytes) {
    MNK_TRY(auto acquired, device->scratch().acquire(device, bytes));
    zeroed = std::move(acquired);
    zeroedUsed = 0;
  }
  const ScratchRange planRange{&zeroed, zeroedUsed, bytes};
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (uint64_t done = 0; done < bytes; done += kZeros.size()) {
    const uint64_t part = std::min<uint64_t>(bytes - done, kZeros.size());
    MNK_TRY(zeroed->write(planRange.start + done, std::span(kZeros).first(part)));
  }
  constexpr uint64_t kUnit = 16;  // any device can bind memory at multiples of it
  zeroedUsed = std::min((planRange.start + bytes + kUnit - 1) / kUnit * kUnit, zeroed->length());
  return planRange;
}

Result<CommandEncoder::Impl::PlanScratch> CommandEncoder::Impl::acquireFor(uint64_t scratchBytes,
                                                                           uint64_t zeroedBytes) {
  MNK_TRY(auto scratch, acquire(scratchBytes));
  MNK_TRY(auto zeroed, acquireZeroed(zeroedBytes));
  return PlanScratch{scratch, zeroed};
}

Result<void> CommandEncoder::Impl::makeReady(std::span<const Dispatch> dispatches, uint64_t scratchBytes,
                                             uint64_t zeroedBytes) {
  MNK_TRY(open());
  MNK_TRY(auto acquired, acquireFor(scratchBytes, zeroedBytes));
  for (const Dispatch& dispatch : dispatches) {
    MNK_TRY(auto prepared, prepare(dispatch, acquired));
    for (BoundMemory& bound : takeMemory(prepared.dispatch)) memory.push_back(std::move(bound));
    addReady(std::make_shared<const CountedDispatch>(std::move(prepared)));
  }
  return {};
}

// All dispatches are prepared before the first one is recorded, so that a plan is recorded completely or not at all.
Result<void> CommandEncoder::Impl::recordReady() {
  MNK_TRY(noteTouched());
  size_t firstMemory = 0, firstTouched = touchedEnd;
  for (const auto& [next, memoryEnd, end] : ready) {
    auto recorded = guarded(kEncoderName, [&] {
      return record(next, std::span(memory).subspan(firstMemory, memoryEnd - firstMemory),
                    std::span(touched).subspan(firstTouched, end - firstTouched));
    });
    if (!recorded) {
      if (&next != &ready.front().dispatch || isMidway) {
        failure = copyOrCode(recorded.error());
        openStep.close();
      }
      return recorded;
    }
    firstMemory = memoryEnd;
    firstTouched = end;
  }
  touchedEnd = touched.size();
  openStep.publish(touched);
  return {};
}

// Computes what the prepared dispatches touch. Fails if they read memory that failed work should have written.
Result<void> CommandEncoder::Impl::noteTouched() {
  const Buffer* const own[] = {scratch.get(), zeroed.get()};
  size_t firstMemory = 0, adding = 0;
  for (const Ready& next : ready) adding += next.dispatch->accesses.size();
  openStep.reserve(touched, adding);
  for (Ready& next : ready) {
    const auto bound = std::span(memory).subspan(firstMemory, next.memoryEnd - firstMemory);
    addTouched(*next.dispatch, bound, own, touched);
    next.touchedEnd = touched.size();
    firstMemory = next.memoryEnd;
  }
  const std::span<const Touched> all = touched;
  return MemoryTracker::shared().checkReads(all.first(touchedEnd), all.subspan(touchedEnd));
}

// Advances all participants, or none. Submits the work to the memory tracker first, so that a caller who sees the
// advance also waits for the work.
Result<void> CommandEncoder::Impl::advance(SubmittedWork& work) {
  MNK_TRY(MemoryTracker::shared().checkOrder(touched, openStep));
  std::lock_guard lock(EncodingParticipant::mutex());
  for (const Participation& joined : participants) MNK_TRY(joined.participant->check());
  work.submit(touched, openStep);
  touchedEnd = 0;
  for (const Participation& joined : participants) joined.participant->advance();
  return {};
}

CommandEncoder::CommandEncoder(std::shared_ptr<Device> device, std::string label)
    : impl_(std::make_unique<Impl>(std::move(label))) {
  impl_->device = std::move(device);
}
CommandEncoder::CommandEncoder(std::shared_ptr<Device> device, std::unique_ptr<Submission> into)
    : CommandEncoder(std::move(device)) {
  impl_->submission = std::move(into);
  impl_->isShared = true;
}
CommandEncoder::~CommandEncoder() = default;

Result<void> CommandEncoder::encode(const Plan& plan) {
  const auto again = [&]() -> Call { return [plan](CommandEncoder& encoder) { return encoder.encode(plan); }; };
  return remembering(again, [&] {
    return guarded(plan.op, [&]() -> Result<void> {
      const Impl::ReadyScope scope{*impl_};
      if (auto readied = impl_->makeReady(plan.dispatches, plan.scratchBytes, plan.zeroedBytes); !readied) {
        return unplanned(impl_->device, plan, std::move(readied).error());
      }
      std::string warning = impl_->summary.warning.empty() ? plan.warning : std::string();
      MNK_TRY(impl_->recordReady());
      if (plan.hasFixedPositions) noteFixedPositions();
      if (!warning.empty()) impl_->summary.warning = std::move(warning);
      return {};
    });
  });
}

Result<void> CommandEncoder::dispatch(const Dispatch& dispatch) {
  const auto again = [&]() -> Call {
    return [dispatch](CommandEncoder& encoder) { return encoder.dispatch(dispatch); };
  };
  return remembering(again, [&] {
    return guarded(kEncoderName, [&]() -> Result<void> {
      const Impl::ReadyScope scope{*impl_};
      MNK_TRY(impl_->makeReady({&dispatch, 1}, 0, 0));
      return impl_->recordReady();
    });
  });
}

Result<void> CommandEncoder::barrier() {
  const auto again = []() -> Call { return [](CommandEncoder& encoder) { return encoder.barrier(); }; };
  return remembering(again, [&] {
    return guarded(kEncoderName, [&]() -> Result<void> {
      MNK_TRY(impl_->open());
      impl_->submission->barrier();
      impl_->hazards.clear();
      ++impl_->summary.barriers;
      return {};
    });
  });
}

Result<void> CommandEncoder::measureOps() {
  const auto again = []() -> Call { return [](CommandEncoder& encoder) { return encoder.measureOps(); }; };
  return remembering(again, [&] {
    return guarded(kEncoderName, [&]() -> Result<void> {
      MNK_TRY(impl_->open());
      impl_->submission->measureOps();
      return {};
    });
  });
}

void CommandEncoder::discard() noexcept {
  if (impl_->isCommitted) return;
  const auto discarded = guarded(kEncoderName, []() -> Result<void> {
    return invalidArgument(kEncoderName, "the encoder is used after what it had recorded was dropped",
                           "a discarded encoder; one whose block or recording failed is discarded, too",
                           "an encoder that can be committed", "Encode the step again, with a new encoder.");
  });
  fail(discarded.error());
}

void CommandEncoder::fail(const Error& error) noexcept {
  impl_->failure = copyOrCode(error);
  impl_->participants.clear();
  impl_->openStep.close();
  impl_->submission.reset();
  impl_->scratch.reset();
  impl_->zeroed.reset();
}
const std::string& CommandEncoder::label() const {
  return impl_->label;
}

Result<Completion> CommandEncoder::commit(Finished finished) {
  return guarded(kEncoderName, [&]() -> Result<Completion> {
    MNK_TRY(impl_->open());
    if (calls_) return neverRuns("it is committed");
    impl_->encoding.end();
    const SignpostInterval committing(SignpostInterval::Name::commit, impl_->label);
    // Allocates everything before the first participant advances.
    Completion completion;
    completion.state_ = std::make_shared<Completion::State>();
    completion.state_->summary = impl_->summary;
    const auto task = std::make_shared<Impl::CompletionTask>();
    task->state = completion.state_;
    task->work.emplace(impl_->submission->progress());
    task->failures = impl_->device->failures_;
    task->finished = std::move(finished);
    MNK_TRY(impl_->submission->prepare([task](SubmissionReport report) { task->run(std::move(report)); }));

    Result<void> advanced, committed;
    {
      std::lock_guard lock(impl_->device->committing_);
      advanced = impl_->advance(*task->work);
      if (advanced) {
        task->participants.swap(impl_->participants);
        committed = impl_->submission->commit();
      }
    }
    if (!advanced) {
      impl_->submission->discardPrepared();
      impl_->openStep.close();  // the caller encodes the step again
      return std::move(advanced).error();
    }
    impl_->isCommitted = true;
    impl_->submission.reset();
    impl_->scratch.reset();
    impl_->zeroed.reset();
    // Participants have already advanced, so report the failure to them and to waiters as a device failure.
    if (!committed) task->run({.outcome = std::move(committed)});
    return completion;
  });
}

Result<Summary> CommandEncoder::run(const std::shared_ptr<Device>& device,
                                    const std::function<Result<void>(CommandEncoder&)>& body, std::string label) {
  return guarded(kEncoderName, [&]() -> Result<Summary> {
    if (isInFinishedHandler()) return waitInHandler(kEncoderName);
    if (!body) {
      return invalidArgument(kEncoderName, "there is nothing to run", "an empty function", "a function that encodes",
                             "Pass a function that records work into the encoder.");
    }
    CommandEncoder encoder(device, std::move(label));
    MNK_TRY(body(encoder));
    MNK_TRY(auto committed, encoder.commit());
    return committed.wait();
  });
}

const Summary& CommandEncoder::summary() const {
  return impl_->summary;
}
const std::shared_ptr<Device>& CommandEncoder::device() const {
  return impl_->device;
}

std::mutex& EncodingParticipant::mutex() {
  // Never destroyed: devices finish work while the process ends.
  alignas(std::mutex) static std::byte storage[sizeof(std::mutex)];
  static auto* const shared = new (storage) std::mutex;
  return *shared;
}

EncodingParticipant* CommandEncoder::participant(const void* key) const {
  // The newest is asked for most often.
  const auto& all = impl_->participants;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& joined) { return joined.key == key; });
  return found == all.rend() ? nullptr : found->participant.get();
}

Result<void> CommandEncoder::join(const void* key, std::shared_ptr<EncodingParticipant> participant) {
  return guarded(kEncoderName, [&]() -> Result<void> {
    MNK_TRY(impl_->open());
    if (calls_) return neverRuns("a participant of the caller joins it");
    if (!participant) {
      return invalidArgument(kEncoderName, "there is no participant to join", "null", "a participant",
                             "Pass an object that follows the encoder.");
    }
    impl_->participants.push_back({key, std::move(participant)});
    return {};
  });
}

}  // namespace mnk
