// Work that a test delays, and calls that wait for it.
#pragma once
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

// The error of every call that would wait in a completion handler.
inline const ExpectedError kInHandler{.code = ErrorCode::wouldDeadlock,
                                      .what = "a handler of finished work cannot wait for other work",
                                      .got = "work that is not finished",
                                      .expected = "work that is finished, such as the handler's own",
                                      .fix = "Wait on another thread, or read in that work's own handler."};

// Runs a call that has to wait, and ends the wait by calling `finish` on another thread. A call that does not wait
// fails the test.
template <typename Finish, typename Call>
auto waitingFor(Finish finish, Call call) {
  std::atomic<bool> hasReturned = false;
  bool wasEarly = false;
  std::thread finisher([&] {
    for (int i = 0; i < 20 && !hasReturned; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    wasEarly = hasReturned;
    finish();
  });
  auto result = call();
  hasReturned = true;
  finisher.join();
  EXPECT(!wasEarly);
  return result;
}

// Devices finish work in order, so nothing committed after the gate finishes before it opens.
class Gate {
 public:
  explicit Gate(const std::shared_ptr<Device>& device) {
    CommandEncoder encoder(device);
    REQUIRE(encoder.commit([open = open_](const Result<Summary>&) { open->wait(); }));
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (!std::exchange(isOpen_, true)) open_->count_down();
  }

 private:
  std::shared_ptr<std::latch> open_ = std::make_shared<std::latch>(1);
  bool isOpen_ = false;
};

inline Result<void> fill(const Tensor& tensor, float value) {
  const std::vector<float> values(tensor.shape().elementCount(), value);
  return tensor.write(std::as_bytes(std::span(values)));
}

inline Tensor floats(const std::shared_ptr<Device>& device, uint64_t count, float value = 0) {
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({count}))));
  REQUIRE(fill(tensor, value));
  return tensor;
}

inline Result<std::vector<float>> valuesOf(const Tensor& tensor) {
  std::vector<float> values(tensor.shape().elementCount());
  if (auto read = tensor.read(std::as_writable_bytes(std::span(values))); !read) return std::move(read).error();
  return values;
}

}  // namespace mnk::test
