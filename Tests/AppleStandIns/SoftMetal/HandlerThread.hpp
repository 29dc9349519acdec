// The thread that runs completion handlers. Counts the command buffers that have yet to reach it.
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
  // A command buffer was submitted to a device; lasts until its handlers are handed over.
  void expect();
  void arrived();
  // Waits until nothing is expected and nothing is left to run. Returns immediately inside a handler.
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
