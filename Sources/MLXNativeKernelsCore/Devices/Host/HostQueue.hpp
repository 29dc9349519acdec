// A thread that runs submissions in the order they were committed.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "MLXNativeKernels/Result.hpp"

namespace mnk::host {

class HostQueue {
 public:
  static Result<std::unique_ptr<HostQueue>> make();
  // Finishes what is queued. On the queue's own thread, which happens when the last user of a device is a submission,
  // it returns at once and the thread ends by itself.
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  void push(std::function<void()> work);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> work;
    bool stopping = false;
  };
  HostQueue() = default;
  static void drain(std::shared_ptr<State> state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace mnk::host
