// A thread that runs submissions in the order they were committed.
#pragma once
#include <condition_variable>
#include <functional>
#include <list>
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

  // Work is handed over in lists, which the caller has made: here nothing is allocated.
  using Work = std::list<std::function<void()>>;
  void push(Work& work) noexcept;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    Work work;
    bool stopping = false;
  };
  HostQueue() = default;
  static void drain(std::shared_ptr<State> state);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace mnk::host
