#include "Runtime/MemoryErrors.hpp"

namespace mnk {

namespace {

Error failureOf(Error cause, std::string_view op, std::string_view what, std::string_view fix) {
  cause.fix.clear();  // the fix of the original error does not apply here
  std::string message = cause.message();
  message.pop_back();  // its period
  return {.code = cause.code,
          .op = std::string(op),
          .what = std::string(what),
          .got = std::move(message),
          .expected = "memory that was written since",
          .fix = std::string(fix)};
}

}  // namespace

Error failedBytes(const Error& cause) {
  return failureOf(cause, "Buffer", "earlier work that was to write this memory failed",
                   "Write the memory again, or submit work that writes it.");
}

Error failedInput(const Error& cause) {
  return failureOf(cause, "CommandEncoder", "a kernel would read memory that failed work was to write",
                   "Write the memory again before work that reads it is encoded.");
}

Error failedDependence(const Error& cause) {
  return failureOf(cause, "CommandEncoder", "the work read memory that failed work was to write",
                   "Write the memory again, then submit this work again.");
}

Error notCommitted(bool toWrite) {
  return {.code = ErrorCode::wouldDeadlock,
          .op = "Buffer",
          .what = "work on this memory has not been started",
          .got = "a command buffer of the app's that is not committed",
          .expected = "work that runs",
          .fix = toWrite ? "Write it after the command buffer is committed."
                         : "Read it after the command buffer is committed.",
          .retryable = true};
}

Error usedByOpenStep(bool toWrite) {
  if (toWrite) {
    return {.op = "Buffer",
            .what = "an open step uses this memory when it runs, so it would see the new contents",
            .got = "a write before the step was submitted",
            .expected = "memory that no open step reads or writes",
            .fix = "Write before the step is encoded, or give each call of the step its own tensor."};
  }
  return {.op = "Buffer",
          .what = "an open step writes this memory when it runs, so it does not hold the result yet",
          .got = "a read before the step was submitted",
          .expected = "memory that no open step writes",
          .fix = "Read after the step: after the closure of encode, or after the encoder is committed."};
}

Error runsBeforeOpenStep() {
  return {.op = "CommandEncoder",
          .what = "this step runs before one that is still open, and shares memory with it that one of them writes",
          .got = "a step that is submitted while another one is open",
          .expected = "steps one after another",
          .fix = "Submit it before the open step is encoded, or after that one was submitted."};
}

Error failedUnreported() {
  return {.code = ErrorCode::deviceFault,
          .op = "Buffer",
          .what = "work on this memory failed",
          .got = "a command buffer of the app's that ended with an error",
          .expected = "memory that was written since",
          .fix = "See the command buffer's error; write the memory again, or submit work that writes it."};
}

}  // namespace mnk
