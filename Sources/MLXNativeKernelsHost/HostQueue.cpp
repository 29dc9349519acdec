#include "HostQueue.hpp"

#include <system_error>

#include "Runtime/WorkInFlight.hpp"

namespace mnk::host {

Result<std::unique_ptr<HostQueue>> HostQueue::make() {
  std::unique_ptr<HostQueue> queue(new HostQueue);
  try {
    queue->thread_ = std::thread(&HostQueue::drain, queue->state_);
  } catch (const std::system_error& error) {
    return Error{.code = ErrorCode::outOfMemory,
                 .op = "Host device",
                 .what = "no thread for the device's queue",
                 .got = error.what(),
                 .expected = "a process that may start one more thread",
                 .fix = "Raise the limit on threads, or release other devices first.",
                 .retryable = true};
  }
  return queue;
}

HostQueue::~HostQueue() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  // In this queue's handler, the thread would wait for itself; in another device's handler, it might wait for a handler
  // that waits for this one.
  if (isInFinishedHandler()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void HostQueue::push(Work& work) noexcept {
  {
    std::lock_guard lock(state_->mutex);
    state_->work.splice(state_->work.end(), work);
  }
  state_->wake.notify_one();
}

void HostQueue::drain(std::shared_ptr<State> state) {
  // Other callbacks on this thread, such as releases of wrapped memory, cannot wait for the device either.
  const FinishedHandler handler;
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->wake.wait(lock, [&] { return state->stopping || !state->work.empty(); });
    if (state->work.empty()) return;
    {
      Work next;
      next.splice(next.end(), state->work, state->work.begin());
      lock.unlock();
      next.front()();
    }  // the work's resources are released here, without the lock
    lock.lock();
  }
}

}  // namespace mnk::host
