// The newest failure of a device's work. It is separate from the device, so that handlers do not retain the device.
#pragma once
#include <mutex>
#include <optional>

#include "Support/Errors.hpp"

namespace mnk {

class FailureLog {
 public:
  void record(const Error& failure) noexcept {
    std::lock_guard lock(mutex_);
    last_ = copyOrCode(failure);
  }
  std::optional<Error> last() const noexcept {
    std::lock_guard lock(mutex_);
    return last_ ? std::optional(copyOrCode(*last_)) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> last_;
};

}  // namespace mnk
