// A step that is recorded once and run many times, such as all layers of a token. It keeps the calls that were made. A
// run makes them again: appends start where their caches then end, and attention covers what the caches then hold. A
// run follows every rule of an encoder: all caches advance or none, and what no longer fits is an error before anything
// runs. The device keeps plans, so that a repeated call is cheap.
//   caches                             advance with every run
//   rotary positions                   follow a cache, if they are its next ones or are not given to appendAndAttend;
//                                      numbers and lists stay, and are refused in a step that appends to a cache
//   other positions, lists, tensors    stay; a tensor is read when the step runs
// A recording has at most 131,072 calls, with those of the steps in it, and steps are nested at most 16 deep.
// A step keeps the tensors and caches that it uses. Threads may share it. One that was moved from, or never recorded,
// has no device, and running it is an error.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk {

class RecordedStep {
 public:
  RecordedStep() = default;
  // Encodes with `body`, so that every rule is checked, and keeps the calls. Nothing runs and nothing advances. The
  // encoder cannot be committed.
  static Result<RecordedStep> record(std::shared_ptr<Device> device,
                                     const std::function<Result<void>(CommandEncoder&)>& body, std::string label = "");

  // Encodes the step and commits it, as CommandEncoder::commit does. Refused, with a retryable error, if another thread
  // changed a cache that it uses meanwhile.
  Result<Completion> run(CommandEncoder::Finished finished = {}) const;
  // Encodes the step, together with the other work of this encoder. If a later call of the step is refused, the encoder
  // cannot be committed.
  Result<void> encode(CommandEncoder& into) const;

  // What was recorded. Later runs may differ, as more keys are divided among more threadgroups.
  const Summary& summary() const;
  const std::shared_ptr<Device>& device() const;

 private:
  friend class StepRecording;
  static Result<void> makeAgain(const CommandEncoder::RememberedCall& remembered, CommandEncoder& into);

  struct State;
  std::shared_ptr<State> state_;
};

// A recording in two parts, for APIs that pass no function.
class StepRecording {
 public:
  // The encoder, which is new, keeps its calls from now on.
  static void begin(CommandEncoder& encoder);
  // The step that was recorded. The encoder cannot be used afterward.
  static Result<RecordedStep> end(CommandEncoder& encoder);
};

}  // namespace mnk
