// What a Completion shares with the device's thread that finishes the work.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>

#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk {

struct Completion::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  Summary summary;
  std::optional<Result<void>> outcome;

  void finish(Result<void> result, double deviceSeconds) {
    {
      std::lock_guard lock(mutex);
      summary.deviceSeconds = deviceSeconds;
      outcome = std::move(result);
    }
    changed.notify_all();
  }

  // Only once the outcome is known.
  Result<Summary> report() const { return *outcome ? Result<Summary>(summary) : Result<Summary>(outcome->error()); }
};

// Whether this thread runs a handler of finished work, on which the device may be waiting.
bool isInFinishedHandler();
// Why unfinished work is not waited for there.
Error waitInHandler(std::string_view op);

// Says so while it lives.
class FinishedHandler {
 public:
  FinishedHandler();
  ~FinishedHandler();
  FinishedHandler(const FinishedHandler&) = delete;
  FinishedHandler& operator=(const FinishedHandler&) = delete;
};

}  // namespace mnk
