#include "MLXNativeKernels/CommandEncoder.hpp"

#include <algorithm>

#include "MLXNativeKernels/KernelRegistry.hpp"
#include "Runtime/Completion.hpp"
#include "Runtime/DispatchRules.hpp"
#include "Runtime/FailureLog.hpp"
#include "Runtime/HazardTracker.hpp"
#include "Runtime/MemoryTracker.hpp"
#include "Runtime/RepeatedOp.hpp"
#include "Runtime/ScratchPool.hpp"
#include "Runtime/ThreadgroupShape.hpp"
#include "Support/CheckedMath.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

constexpr std::string_view kEncoderName = "CommandEncoder";

Error pastScratch(const Binding& binding, uint64_t bytes) {
  return {.op = std::string(kEncoderName),
          .what = "a binding reaches past the plan's scratch memory",
          .got = fmt::format("{} at byte {} for index {}", countText(binding.length, "byte"), binding.offset,
                             binding.index),
          .expected = fmt::format("a range inside {}", countText(bytes, "byte")),
          .fix = "Let the plan ask for as much as its dispatches bind."};
}

}  // namespace

struct CommandEncoder::Impl {
  struct CompletionTask;
  struct Participation {
    const void* key;
    std::shared_ptr<EncodingParticipant> participant;
  };

  // Memory that a plan asked for; without a buffer where it needs none.
  struct ScratchRange {
    std::shared_ptr<Buffer> buffer;
    uint64_t start = 0;
    uint64_t bytes = 0;
  };
  struct PlanScratch {
    ScratchRange scratch;
    ScratchRange zeroed;
  };

  std::shared_ptr<Device> device;
  std::string label;
  std::unique_ptr<Submission> submission;  // made by the first use
  TouchedIndex hazards;                    // since the last barrier
  std::vector<Touched> touched;            // by all that is recorded, but for scratch memory
  std::shared_ptr<Buffer> scratch;         // all plans share it; hazards order them
  std::shared_ptr<Buffer> zeroed;          // plans have parts of their own, each zeroed when it is encoded
  uint64_t zeroedUsed = 0;
  Summary summary;
  std::vector<Participation> participants;
  // What is being encoded, and what each of it touches: accesses up to a number of them.
  std::vector<ReadyDispatch> ready;
  std::vector<Touched> accesses;
  std::vector<size_t> accessEnds;
  bool isCommitted = false;
  bool isMidway = false;         // the submission holds something that is not accounted for
  std::optional<Error> failure;  // why the submission holds part of a call; it must not run

  Result<void> open();
  Result<ReadyDispatch> prepare(const Dispatch& dispatch, const PlanScratch& acquired) const;
  Result<void> record(ReadyDispatch& next, std::span<const Touched> accesses);
  Result<ScratchRange> acquire(uint64_t bytes);
  Result<ScratchRange> acquireZeroed(uint64_t bytes);
  Result<PlanScratch> acquireFor(uint64_t scratchBytes, uint64_t zeroedBytes);
  Result<void> makeReady(std::span<const Dispatch> dispatches, uint64_t scratchBytes, uint64_t zeroedBytes);
  template <typename MemoryOf>
  Result<void> makeReady(const RepeatedOp& op, const KnownPlan& known, MemoryOf memoryOf);
  void keep(const OpForm& form, const Plan& plan, std::vector<ReadyDispatch> made);
  Result<void> recordReady();
  Result<void> noteTouched();
  Result<void> advance(SubmittedWork& work);
};

// What is to be done when the device has finished the work. Nothing in it allocates.
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
    // Handlers and waiters read the results of this work without waiting, and readers find it done.
    const auto finish = [&]() noexcept { state->finish(std::move(outcome), report.deviceSeconds); };
    work->retire(std::ref(finish));
    if (!finished) return;
    try {
      finished(*state->outcome);
    } catch (...) {
      // The caller's exception has nowhere to go on a thread of the device.
    }
  }
};

// Whether the encoder can still record; makes the submission.
Result<void> CommandEncoder::Impl::open() {
  if (!device) {
    return Error{.op = std::string(kEncoderName),
                 .what = "the encoder has no device",
                 .got = "a null device",
                 .expected = "a device",
                 .fix = "Make one with Device::makeDefault and pass it to the encoder."};
  }
  if (isCommitted) {
    return Error{.op = std::string(kEncoderName),
                 .what = "the encoder is used after it was committed",
                 .got = "a committed encoder",
                 .expected = "an encoder that still records",
                 .fix = "Make a new encoder for further work."};
  }
  if (failure) return *failure;
  if (submission) return {};
  MNK_TRY(auto made, device->makeSubmission(label));
  // Enough for a layer or two, so that they do not grow with every dispatch.
  ready.reserve(8);
  accesses.reserve(32);
  accessEnds.reserve(8);
  touched.reserve(64);
  submission = std::move(made);
  return {};
}

// Looks up the pipeline, checks every rule and settles the threadgroup size. Changes nothing.
Result<ReadyDispatch> CommandEncoder::Impl::prepare(const Dispatch& dispatch, const PlanScratch& acquired) const {
  MNK_TRY(auto pipeline, device->registry().pipeline(dispatch.kernel));

  ReadyDispatch ready{.dispatch = dispatch, .pipeline = pipeline};
  Size3& threadgroup = ready.dispatch.grid.threadgroup;
  const uint32_t maxThreads = pipeline->maxThreadsPerThreadgroup();
  if (dispatch.grid.mayShrink) threadgroup = shrunkTo(maxThreads, threadgroup);
  for (Binding& binding : ready.dispatch.buffers) {
    if (binding.buffer) continue;
    const ScratchRange& memory = binding.isZeroed ? acquired.zeroed : acquired.scratch;
    if (memory.buffer && !fits(binding.offset, binding.length, memory.bytes)) return pastScratch(binding, memory.bytes);
    binding.buffer = memory.buffer;
    binding.offset += memory.start;
  }
  for (ThreadgroupMemory& memory : ready.dispatch.threadgroupMemory) {
    constexpr uint32_t kUnit = 16;  // some devices take multiples of it only
    if (memory.bytes <= UINT32_MAX - kUnit) memory.bytes = (memory.bytes + kUnit - 1) / kUnit * kUnit;
  }
  const DispatchCheck check{.dispatch = ready.dispatch, .device = *device, .pipeline = *pipeline};
  MNK_TRY(checkRules(dispatchRules(), check, dispatch.kind.empty() ? kEncoderName : dispatch.kind));
  const bool isOpen = threadgroup == Size3{0, 0, 0};
  ready.threadgroup = isOpen ? threadgroupFor(dispatch.grid.extent, maxThreads) : threadgroup;
  return ready;
}

Result<void> CommandEncoder::Impl::record(ReadyDispatch& next, std::span<const Touched> accesses) {
  const Summary::Counts counts{.dispatches = 1,
                               .bytesRead = next.dispatch.countedBytesRead(),
                               .bytesWritten = next.dispatch.countedBytesWritten()};
  const std::string kind = next.dispatch.kind;
  if (hazards.conflicts(accesses)) {
    isMidway = true;
    submission->barrier();
    hazards.clear();
    ++summary.barriers;
  }
  MNK_TRY(submission->dispatch(std::move(next)));
  isMidway = true;
  for (const Touched& access : accesses) hazards.add(access);
  for (Summary::Counts* sum : {&summary.total, &summary.kinds[kind]}) {
    sum->dispatches += counts.dispatches;
    sum->bytesRead += counts.bytesRead;
    sum->bytesWritten += counts.bytesWritten;
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
  return ScratchRange{scratch, 0, bytes};
}

// Zeroes bytes that no other plan of this encoder has. Nothing that runs uses them: what is acquired was given back
// when its last work had finished.
Result<CommandEncoder::Impl::ScratchRange> CommandEncoder::Impl::acquireZeroed(uint64_t bytes) {
  if (bytes == 0) return ScratchRange{};
  if (!zeroed || zeroed->length() - zeroedUsed < bytes) {
    MNK_TRY(auto acquired, device->scratch().acquire(device, bytes));
    zeroed = std::move(acquired);
    zeroedUsed = 0;
  }
  const ScratchRange ofPlan{zeroed, zeroedUsed, bytes};
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (uint64_t done = 0; done < bytes; done += kZeros.size()) {
    const uint64_t part = std::min<uint64_t>(bytes - done, kZeros.size());
    MNK_TRY(zeroed->write(ofPlan.start + done, std::span(kZeros).first(part)));
  }
  constexpr uint64_t kUnit = 16;  // any device can bind memory at multiples of it
  zeroedUsed = std::min((ofPlan.start + bytes + kUnit - 1) / kUnit * kUnit, zeroed->length());
  return ofPlan;
}

Result<CommandEncoder::Impl::PlanScratch> CommandEncoder::Impl::acquireFor(uint64_t scratchBytes,
                                                                           uint64_t zeroedBytes) {
  MNK_TRY(auto ofScratch, acquire(scratchBytes));
  MNK_TRY(auto ofZeroes, acquireZeroed(zeroedBytes));
  return PlanScratch{std::move(ofScratch), std::move(ofZeroes)};
}

Result<void> CommandEncoder::Impl::makeReady(std::span<const Dispatch> dispatches, uint64_t scratchBytes,
                                             uint64_t zeroedBytes) {
  MNK_TRY(open());
  MNK_TRY(auto acquired, acquireFor(scratchBytes, zeroedBytes));
  ready.clear();
  for (const Dispatch& dispatch : dispatches) {
    MNK_TRY(auto prepared, prepare(dispatch, acquired));
    if (!dispatch.grid.isEmpty()) ready.push_back(std::move(prepared));
  }
  return {};
}

// All are ready before the first is recorded, so that a plan is recorded whole or not at all.
Result<void> CommandEncoder::Impl::recordReady() {
  const size_t known = touched.size();
  MNK_TRY(noteTouched());
  const std::span<const Touched> all = accesses;
  for (size_t i = 0, begin = 0; i < ready.size(); begin = accessEnds[i++]) {
    auto recorded = guarded(kEncoderName, [&] { return record(ready[i], all.subspan(begin, accessEnds[i] - begin)); });
    if (recorded) continue;
    touched.resize(known);
    if (i != 0 || isMidway) failure = recorded.error();
    return recorded;
  }
  return {};
}

// What ops of a known form have in common is there already. `memoryOf` sets the buffer of an operand, and returns where
// the operand starts.
template <typename MemoryOf>
Result<void> CommandEncoder::Impl::makeReady(const RepeatedOp& op, const KnownPlan& known, MemoryOf memoryOf) {
  MNK_TRY(open());
  MNK_TRY(auto acquired, acquireFor(known.scratchBytes, known.zeroedBytes));
  ready.clear();
  for (size_t i = 0; i < known.steps.size(); ++i) {
    const auto& [model, bound] = known.steps[i];
    ReadyDispatch& next = ready.emplace_back();
    if (!model.pool->take(next.dispatch)) next.dispatch = model.dispatch;
    next.pipeline = model.pipeline;
    next.threadgroup = model.threadgroup;
    next.pool = model.pool;
    op.patch(i, next.dispatch);
    for (size_t b = 0; b < bound.size(); ++b) {
      Binding& binding = next.dispatch.buffers[b];
      if (bound[b].operand >= KnownPlan::Bound::kZeroed) {
        const ScratchRange& memory = binding.isZeroed ? acquired.zeroed : acquired.scratch;
        binding.buffer = memory.buffer;
        binding.offset = memory.start + bound[b].offset;
      } else {
        binding.offset = memoryOf(bound[b].operand, binding.buffer) + bound[b].offset;
      }
    }
  }
  return {};
}

// Keeps what was made for an op, for others of its form.
void CommandEncoder::Impl::keep(const OpForm& form, const Plan& plan, std::vector<ReadyDispatch> made) {
  KnownPlan known{.words = {}, .steps = {}, .scratchBytes = plan.scratchBytes, .zeroedBytes = plan.zeroedBytes};
  const auto operands = form.operands();
  for (size_t i = 0; i < made.size(); ++i) {
    KnownPlan::Step step{.ready = std::move(made[i]), .bound = {}};
    for (const Binding& binding : plan.dispatches[i].buffers) {
      if (!binding.buffer) {
        step.bound.push_back(
            {binding.isZeroed ? KnownPlan::Bound::kZeroed : KnownPlan::Bound::kScratch, binding.offset});
        continue;
      }
      const auto operand = std::find_if(operands.begin(), operands.end(),
                                        [&](const OpForm::Operand& each) { return each.index == binding.index; });
      // A binding that the form does not name cannot be made again.
      if (operand == operands.end() || operand->tensor->buffer() != binding.buffer) return;
      step.bound.push_back(
          {static_cast<uint32_t>(operand - operands.begin()), binding.offset - operand->tensor->byteOffset()});
    }
    for (Binding& binding : step.ready.dispatch.buffers) binding.buffer.reset();
    step.ready.pool = std::make_shared<DispatchPool>();
    known.steps.push_back(std::move(step));
  }
  device->knownPlans().keep(form, std::move(known));
}

// Refuses to read what failed work was to write.
Result<void> CommandEncoder::Impl::noteTouched() {
  const size_t known = touched.size();
  const Buffer* const own[] = {scratch.get(), zeroed.get()};
  accesses.clear();
  accessEnds.clear();
  for (const ReadyDispatch& next : ready) {
    addTouched(next.dispatch, own, accesses);
    accessEnds.push_back(accesses.size());
  }
  std::copy_if(accesses.begin(), accesses.end(), std::back_inserter(touched),
               [](const Touched& each) { return !each.isScratch; });
  const std::span<const Touched> all = touched;
  auto checked = MemoryTracker::shared().checkReads(all.first(known), all.subspan(known));
  if (!checked) touched.resize(known);
  return checked;
}

// Advances every participant, or none. The work is known before an advance can be seen, so that a caller that sees it
// waits for the work.
Result<void> CommandEncoder::Impl::advance(SubmittedWork& work) {
  std::lock_guard lock(EncodingParticipant::mutex());
  for (const Participation& joined : participants) MNK_TRY(joined.participant->check());
  work.submit(touched);
  for (const Participation& joined : participants) joined.participant->advance();
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
  const auto again = [&]() -> Call {
    return [plan](CommandEncoder& encoder, uint64_t) { return encoder.encode(plan); };
  };
  return remembering(again, [&] {
    return guarded(plan.op, [&]() -> Result<void> {
      MNK_TRY(impl_->makeReady(plan.dispatches, plan.scratchBytes, plan.zeroedBytes));
      return impl_->recordReady();
    });
  });
}

Result<void> CommandEncoder::repeat(RepeatedOp& op) {
  return guarded(op.name(), [&]() -> Result<void> {
    const auto& target = impl_->device;
    CallMemo* const memo = std::exchange(memo_, nullptr);
    if (memo && memo->known() && !impl_->isCommitted) {
      OpForm choices;
      MNK_TRY(op.refine(*target, choices));
      if (memo->serves(target->knownPlans(), choices)) {
        MNK_TRY(impl_->makeReady(op, *memo->known(), [&](uint32_t operand, std::shared_ptr<Buffer>& buffer) {
          buffer = memo->operands()[operand].buffer;
          return memo->operands()[operand].offset;
        }));
        return impl_->recordReady();
      }
    }
    OpForm form;
    const bool canRepeat = target && !impl_->isCommitted && op.describe(form) && form.isRepeatable(*target);
    std::shared_ptr<const KnownPlan> known = canRepeat ? target->knownPlans().find(form) : nullptr;
    const bool isKnown = known != nullptr;
    const size_t firstChoice = form.words().size();
    if (isKnown) {
      MNK_TRY(op.refine(*target, form));
      if (form.words().size() != firstChoice) known = target->knownPlans().find(form);
    }
    if (known) {
      MNK_TRY(impl_->makeReady(op, *known, [&](uint32_t operand, std::shared_ptr<Buffer>& buffer) {
        const Tensor& tensor = *form.operands()[operand].tensor;
        buffer = tensor.buffer();
        return tensor.byteOffset();
      }));
      if (memo) memo->keep(target->knownPlans(), form, firstChoice, std::move(known));
      return impl_->recordReady();
    }
    MNK_TRY(auto planned, op.plan(target.get()));
    MNK_TRY(impl_->makeReady(planned.dispatches, planned.scratchBytes, planned.zeroedBytes));
    const bool isKept = canRepeat && !impl_->ready.empty() && impl_->ready.size() == planned.dispatches.size();
    auto made = isKept ? impl_->ready : std::vector<ReadyDispatch>();
    MNK_TRY(impl_->recordReady());
    if (!isKept) return {};
    // Without memory to keep it, it is planned again.
    (void)guarded(op.name(), [&]() -> Result<void> {
      if (!isKnown) {
        // Those whose form says all have no further choices to add.
        const size_t words = form.words().size();
        MNK_TRY(op.refine(*target, form));
        if (form.words().size() != words) target->knownPlans().keep(form.first(words), {});
      }
      impl_->keep(form, planned, std::move(made));
      return {};
    });
    return {};
  });
}

Result<void> CommandEncoder::dispatch(const Dispatch& dispatch) {
  const auto again = [&]() -> Call {
    return [dispatch](CommandEncoder& encoder, uint64_t) { return encoder.dispatch(dispatch); };
  };
  return remembering(again, [&] {
    return guarded(kEncoderName, [&]() -> Result<void> {
      MNK_TRY(impl_->makeReady({&dispatch, 1}, 0, 0));
      return impl_->recordReady();
    });
  });
}

Result<void> CommandEncoder::barrier() {
  const auto again = []() -> Call { return [](CommandEncoder& encoder, uint64_t) { return encoder.barrier(); }; };
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

void CommandEncoder::fail(const Error& error) {
  impl_->failure = error;
}
const std::string& CommandEncoder::label() const {
  return impl_->label;
}

Result<Completion> CommandEncoder::commit(Finished finished) {
  return guarded(kEncoderName, [&]() -> Result<Completion> {
    MNK_TRY(impl_->open());
    if (calls_) return neverRuns("it is committed");
    // Everything that can run out of memory is made before the first participant advances.
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
      return std::move(advanced).error();
    }
    impl_->isCommitted = true;
    impl_->submission.reset();
    impl_->scratch.reset();
    impl_->zeroed.reset();
    // Participants have advanced, so the failure reaches them and the waiters as one of the device would.
    if (!committed) task->run({.outcome = std::move(committed)});
    return completion;
  });
}

Result<Summary> CommandEncoder::run(const std::shared_ptr<Device>& device,
                                    const std::function<Result<void>(CommandEncoder&)>& body, std::string label) {
  return guarded(kEncoderName, [&]() -> Result<Summary> {
    if (isInFinishedHandler()) return waitInHandler(kEncoderName);
    if (!body) {
      return Error{.op = std::string(kEncoderName),
                   .what = "there is nothing to run",
                   .got = "an empty function",
                   .expected = "a function that encodes",
                   .fix = "Pass a function that records work into the encoder."};
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

std::shared_ptr<EncodingParticipant> CommandEncoder::participant(const void* key) const {
  // The newest is asked for most often.
  const auto& all = impl_->participants;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& joined) { return joined.key == key; });
  return found == all.rend() ? nullptr : found->participant;
}

Result<void> CommandEncoder::join(const void* key, std::shared_ptr<EncodingParticipant> participant) {
  return guarded(kEncoderName, [&]() -> Result<void> {
    MNK_TRY(impl_->open());
    if (calls_) return neverRuns("a participant of the caller joins it");
    if (!participant) {
      return Error{.op = std::string(kEncoderName),
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
