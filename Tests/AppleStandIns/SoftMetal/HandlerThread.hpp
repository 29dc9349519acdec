// The thread that completion handlers run on. It knows how many command buffers are on their way to it.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace softmetal {

class HandlerThread {
 public:
  static HandlerThread& shared();

  void push(std::function<void()> work);
  // A command buffer that was given to a device, until its handlers are handed over.
  void expect();
  void arrived();
  // Nothing expected and nothing to run. Returns at once where a handler calls it.
  void waitUntilIdle();

 private:
  HandlerThread();
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  size_t expected_ = 0;
  bool isRunning_ = false;
  std::thread::id id_;
};

}  // namespace softmetal
