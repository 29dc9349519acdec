#include "Runtime/Completion.hpp"

#include "Support/Errors.hpp"

namespace mnk {

namespace {

// If copying the counts by kind runs out of memory, returns less, because the work itself has succeeded.
Summary copied(const Summary& summary) noexcept {
  try {
    return summary;
  } catch (...) {
    return {.total = summary.total, .barriers = summary.barriers, .deviceSeconds = summary.deviceSeconds, .kinds = {}};
  }
}

}  // namespace

Result<Summary> Completion::wait() const {
  return guarded("Completion", [&]() -> Result<Summary> {
    if (!state_) {
      return Error{.op = "Completion",
                   .what = "nothing was committed",
                   .got = "an empty completion",
                   .expected = "one that an encoder's commit returned",
                   .fix = "Commit an encoder and wait for what it returns."};
    }
    std::unique_lock lock(state_->mutex);
    if (!state_->outcome && isInFinishedHandler()) return waitInHandler("Completion");
    state_->changed.wait(lock, [&] { return state_->outcome.has_value(); });
    const Result<Summary>& outcome = *state_->outcome;
    if (!outcome) return copyOrCode(outcome.error());
    return copied(*outcome);
  });
}

bool Completion::isDone() const {
  if (!state_) return false;
  std::lock_guard lock(state_->mutex);
  return state_->outcome.has_value();
}

Summary Completion::summary() const {
  if (!state_) return {};
  std::lock_guard lock(state_->mutex);
  return copied(state_->submitted());
}

std::string Summary::text() const {
  std::string text =
      fmt::format("{}, {}, {} read, {} written", countText(total.dispatches, "dispatch"),
                  countText(barriers, "barrier"), bytesText(total.bytesRead), bytesText(total.bytesWritten));
  if (deviceSeconds > 0) text += ", " + secondsText(deviceSeconds);
  if (!warning.empty()) text += "; warning: " + warning;
  return text;
}

namespace {

thread_local uint32_t finishedHandlers = 0;

}  // namespace

bool isInFinishedHandler() {
  return finishedHandlers != 0;
}
Error waitInHandler(std::string_view op) {
  return {.code = ErrorCode::wouldDeadlock,
          .op = std::string(op),
          .what = "a handler of finished work cannot wait for other work",
          .got = "work that is not finished",
          .expected = "work that is finished, such as the handler's own",
          .fix = "Wait on another thread, or read in that work's own handler."};
}
FinishedHandler::FinishedHandler() {
  ++finishedHandlers;
}
FinishedHandler::~FinishedHandler() {
  --finishedHandlers;
}

}  // namespace mnk
