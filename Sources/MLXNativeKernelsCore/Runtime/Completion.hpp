// State that a Completion shares with the device thread that finishes the work.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>

#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk {

struct Completion::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  Summary summary;  // moves into the outcome of work that succeeds
  std::optional<Result<Summary>> outcome;

  void finish(Result<void> result, const SubmissionReport& report) noexcept {
    {
      std::lock_guard lock(mutex);
      summary.deviceSeconds = report.deviceSeconds;
      for (const auto& [kind, seconds] : report.opSeconds) {
        const auto counts = summary.kinds.find(kind);
        if (counts == summary.kinds.end()) continue;
        counts->second.deviceSeconds = seconds;
        summary.total.deviceSeconds += seconds;
      }
      if (result) {
        outcome.emplace(std::move(summary));
      } else {
        outcome.emplace(std::move(result).error());
      }
    }
    changed.notify_all();
  }

  const Summary& submitted() const { return outcome && *outcome ? **outcome : summary; }
};

// Whether this thread is inside a completion handler, for which the device may be waiting.
bool isInFinishedHandler();
// The error for a wait for unfinished work inside a handler.
Error waitInHandler(std::string_view op);

// Marks the thread as inside a completion handler during its lifetime.
class FinishedHandler {
 public:
  FinishedHandler();
  ~FinishedHandler();
  FinishedHandler(const FinishedHandler&) = delete;
  FinishedHandler& operator=(const FinishedHandler&) = delete;
};

}  // namespace mnk
