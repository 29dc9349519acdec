#include "HandlerThread.hpp"

namespace softmetal {

// Lives until the process ends, as its thread does.
HandlerThread& HandlerThread::shared() {
  static auto& thread = *new HandlerThread;
  return thread;
}

HandlerThread::HandlerThread() {
  std::thread thread([this] { run(); });
  id_ = thread.get_id();
  thread.detach();
}

void HandlerThread::push(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void HandlerThread::expect() {
  std::lock_guard lock(mutex_);
  expected_ += 1;
}

void HandlerThread::arrived() {
  std::lock_guard lock(mutex_);
  expected_ -= 1;
  changed_.notify_all();
}

void HandlerThread::waitUntilIdle() {
  if (std::this_thread::get_id() == id_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return expected_ == 0 && work_.empty() && !isRunning_; });
}

void HandlerThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !work_.empty(); });
    isRunning_ = true;
    {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
    }  // its captures are released here, without the lock
    lock.lock();
    isRunning_ = false;
    changed_.notify_all();
  }
}

}  // namespace softmetal
