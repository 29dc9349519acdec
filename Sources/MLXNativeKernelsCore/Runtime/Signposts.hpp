// Signpost intervals for Instruments on Apple platforms: the CPU time of a step.
#pragma once
#include <string>

#if defined(__APPLE__)
#include <os/signpost.h>

#include <utility>
#endif

namespace mnk {

// From its construction until `end` or its destruction.
class SignpostInterval {
 public:
  enum class Name { encode, commit };

#if defined(__APPLE__)
  SignpostInterval(Name name, const std::string& label) noexcept : name_(name) {
    if (!os_signpost_enabled(log())) return;
    id_ = os_signpost_id_generate(log());
    // The names must be literals.
    if (name_ == Name::encode) {
      os_signpost_interval_begin(log(), id_, "Encode", "%{public}s", label.c_str());
    } else {
      os_signpost_interval_begin(log(), id_, "Commit", "%{public}s", label.c_str());
    }
  }
  void end() noexcept {
    const os_signpost_id_t id = std::exchange(id_, OS_SIGNPOST_ID_NULL);
    if (id == OS_SIGNPOST_ID_NULL) return;
    if (name_ == Name::encode) {
      os_signpost_interval_end(log(), id, "Encode");
    } else {
      os_signpost_interval_end(log(), id, "Commit");
    }
  }

 private:
  static os_log_t log() noexcept {
    static const os_log_t shared = os_log_create("MLXNativeKernels", OS_LOG_CATEGORY_POINTS_OF_INTEREST);
    return shared;
  }

  Name name_;
  os_signpost_id_t id_ = OS_SIGNPOST_ID_NULL;  // null: nothing to end

 public:
#else
  SignpostInterval(Name, const std::string&) noexcept {}
  void end() noexcept {}
#endif
  ~SignpostInterval() {
    end();
  }
  SignpostInterval(const SignpostInterval&) = delete;
  SignpostInterval& operator=(const SignpostInterval&) = delete;
};

}  // namespace mnk
