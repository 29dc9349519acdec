// Runs a function once: in `run` or on destruction. Releases memory that a call takes over even if the call fails
// before an object owns it.
#pragma once
#include <functional>
#include <utility>

namespace mnk {

class Releasing {
 public:
  explicit Releasing(std::function<void()> release) noexcept : release_(std::move(release)) {}
  Releasing(Releasing&& other) noexcept : release_(std::exchange(other.release_, nullptr)) {}
  Releasing& operator=(Releasing&&) = delete;
  ~Releasing() { run(); }

  void run() noexcept {
    const auto release = std::exchange(release_, nullptr);
    if (!release) return;
    try {
      release();
    } catch (...) {  // the caller's code; there is no one to report to
    }
  }

 private:
  std::function<void()> release_;
};

}  // namespace mnk
