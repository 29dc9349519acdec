// A thread that runs submissions in commit order.
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
  // Finishes queued work. On the queue's own thread, if the last user of a device is a submission, it returns
  // immediately and the thread ends on its own.
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  // The caller passes work as lists that it has allocated, so nothing is allocated here.
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
