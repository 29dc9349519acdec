// Recordings in two parts, for APIs that pass no function: an encoder that records, and the step that it becomes.
#pragma once
#include "MLXNativeKernels/RecordedStep.hpp"

namespace mnk {

// Why the encoder of a recording is refused.
Error ofRecording(std::string_view got);

class StepRecording {
 public:
  // Calls are kept from now on. The encoder is new.
  static void begin(CommandEncoder& encoder);
  // The encoder can do nothing after it.
  static Result<RecordedStep> end(CommandEncoder& encoder);
};

}  // namespace mnk
