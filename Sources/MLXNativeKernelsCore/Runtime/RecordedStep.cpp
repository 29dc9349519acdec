#include "MLXNativeKernels/CommandEncoder.hpp"

#include "Runtime/RepeatedOp.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr std::string_view kStepName = "RecordedStep";

// A step that is recorded in others multiplies: without limits, a few lines could record more calls than a run could
// ever make.
constexpr uint64_t kMaxCalls = 1 << 17;
constexpr uint32_t kMaxNesting = 16;

Result<void> checkRecordable(uint64_t calls, uint32_t nesting) {
  if (nesting > kMaxNesting) {
    return invalidArgument(kStepName, "recorded steps are nested too deeply",
                           fmt::format("{} steps, each in the next", nesting), fmt::format("at most {}", kMaxNesting),
                           "Record the calls of the inner steps in one step, or encode the steps one after another.");
  }
  if (calls > kMaxCalls) {
    return invalidArgument(kStepName, "a recording has too many calls",
                           fmt::format("{}, with those of the steps in it", countText(calls, "call")),
                           fmt::format("at most {}", kMaxCalls),
                           "Record fewer calls, such as those of one token, and run the step several times.");
  }
  return {};
}

Error emptyStep() {
  return invalidArgument(kStepName, "there is no step to run", "a step that was moved from, or never recorded",
                         "a recorded step", "Record a step, and run it where it was moved to.");
}

}  // namespace

struct RecordedStep::State {
  std::shared_ptr<Device> device;
  std::string label;
  uint64_t callCount = 1;  // that a run makes, with those of the steps in it
  uint32_t nesting = 1;
  std::vector<CommandEncoder::RememberedCall> calls;
  Summary summary;
};

Result<RecordedStep> RecordedStep::record(std::shared_ptr<Device> device,
                                          const std::function<Result<void>(CommandEncoder&)>& body, std::string label) {
  return guarded(kStepName, [&]() -> Result<RecordedStep> {
    if (!body) {
      return invalidArgument(kStepName, "there is nothing to record", "an empty function", "a function that encodes",
                             "Pass a function that records work into the encoder.");
    }
    if (!device) {
      return invalidArgument(kStepName, "there is no device to record for", "a null device", "a device",
                             "Make one with Device::makeDefault and pass it.");
    }
    CommandEncoder encoder(std::move(device), std::move(label));
    StepRecording::begin(encoder);
    MNK_TRY(body(encoder));
    return StepRecording::end(encoder);
  });
}

void StepRecording::begin(CommandEncoder& encoder) {
  encoder.calls_ = std::make_unique<std::vector<CommandEncoder::RememberedCall>>();
}

Result<RecordedStep> StepRecording::end(CommandEncoder& encoder) {
  return guarded(kStepName, [&]() -> Result<RecordedStep> {
    if (!encoder.calls_) {
      return invalidArgument(kStepName, "the encoder records no step", "an encoder that runs, or whose step was made",
                             "an encoder of a recording", "Make an encoder that records, and one step of it.");
    }
    MNK_TRY(encoder.checkRecorded());
    auto state = std::make_shared<RecordedStep::State>(encoder.device(), encoder.label(),
                                                       std::max<uint64_t>(encoder.callCount_, 1), encoder.nesting_ + 1);
    state->summary = encoder.summary();
    encoder.fail(CommandEncoder::neverRuns("it is used after its step was made"));
    state->calls = std::move(*encoder.calls_);
    encoder.calls_.reset();
    RecordedStep step;
    step.state_ = std::move(state);
    return step;
  });
}

Error CommandEncoder::neverRuns(std::string_view got) {
  return invalidArgument("CommandEncoder", "the encoder of a recording never runs", got, "calls that encode",
                         "End the recording, then run its step.");
}

Result<Completion> RecordedStep::run(CommandEncoder::Finished finished) const {
  return guarded(kStepName, [&]() -> Result<Completion> {
    if (!state_) return emptyStep();
    CommandEncoder encoder(state_->device, state_->label);
    MNK_TRY(encode(encoder));
    return encoder.commit(std::move(finished));
  });
}

Result<void> RecordedStep::makeAgain(const CommandEncoder::RememberedCall& remembered, CommandEncoder& into) {
  CallMemo* const memo = remembered.memo.get();
  if (!memo) return guarded(kStepName, [&] { return remembered.call(into); });
  const std::unique_lock lock(memo->mutex, std::try_to_lock);
  into.memo_ = lock ? memo : nullptr;
  auto encoded = guarded(kStepName, [&] { return remembered.call(into); });
  into.memo_ = nullptr;  // of a call that was refused before its op
  return encoded;
}

Result<void> RecordedStep::encode(CommandEncoder& into) const {
  const auto again = [this]() -> CommandEncoder::Call {
    return [step = *this](CommandEncoder& encoder) { return step.encode(encoder); };
  };
  const uint64_t calls = into.callCount_ + (state_ ? state_->callCount : 0);
  const uint32_t nesting = std::max(into.nesting_, state_ ? state_->nesting : 0);
  if (into.calls_) MNK_TRY(checkRecordable(calls, nesting + 1));
  MNK_TRY(into.remembering(again, [&] {
    return guarded(kStepName, [&]() -> Result<void> {
      if (!state_) return emptyStep();
      if (into.device() != state_->device) {
        return invalidArgument(kStepName, "the encoder is of another device than the step",
                               into.device() ? into.device()->name() : "an encoder without a device",
                               "the same device object as when it was recorded, " + state_->device->name(),
                               "Record the step on the device that runs it.");
      }
      for (size_t i = 0; i < state_->calls.size(); ++i) {
        auto encoded = makeAgain(state_->calls[i], into);
        if (encoded) continue;
        if (i != 0) into.fail(encoded.error());  // it holds part of the step
        return encoded;
      }
      return {};
    });
  }));
  if (into.calls_) {
    into.callCount_ = calls;
    into.nesting_ = nesting;
  }
  return {};
}

const Summary& RecordedStep::summary() const {
  static const Summary none;
  return state_ ? state_->summary : none;
}
const std::shared_ptr<Device>& RecordedStep::device() const {
  static const std::shared_ptr<Device> none;
  return state_ ? state_->device : none;
}

// Stores the call before encoding it, so that running out of memory cannot lose an encoded call.
Result<void> CommandEncoder::remember(const std::function<Call()>& make, const std::function<Result<void>()>& body,
                                      bool hasOneForm) {
  return guarded(kStepName, [&]() -> Result<void> {
    MNK_TRY(checkRecordable(callCount_ + 1, 0));
    calls_->push_back({make(), hasOneForm ? std::make_shared<CallMemo>() : nullptr});
    auto calls = std::move(calls_);
    auto encoded = guarded(kStepName, body);
    calls_ = std::move(calls);
    if (encoded)
      ++callCount_;
    else
      calls_->pop_back();
    return encoded;
  });
}

}  // namespace mnk
