#include "WorkerPool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

namespace mnk::host {

namespace {

struct Job {
  uint64_t count;
  uint64_t part;  // items taken at a time
  const std::function<void(uint64_t, uint64_t)>* body;
  uint32_t helpersWanted;
  uint32_t helpersActive = 0;
  std::atomic<uint64_t> next{0};

  void drain() {
    for (;;) {
      const uint64_t begin = next.fetch_add(part, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(begin + part, count));
    }
  }
};

class WorkerPool {
 public:
  static WorkerPool& shared() {
    static WorkerPool* pool = new WorkerPool;
    return *pool;
  }

  void run(Job& job) {
    const uint32_t helpers = job.helpersWanted;  // helpers decrement it from now on
    {
      std::lock_guard lock(mutex_);
      announce(job, helpers);
    }
    for (uint32_t i = 0; i < helpers; ++i) wake_.notify_one();
    job.drain();
    // Does not wait for a helper that has not started.
    std::unique_lock lock(mutex_);
    jobs_.remove(&job);
    done_.wait(lock, [&] { return job.helpersActive == 0; });
  }

 private:
  // With fewer threads than wanted, or none, the work still completes.
  void announce(Job& job, uint32_t helpers) noexcept {
    try {
      jobs_.push_back(&job);
      for (; threadCount_ < helpers; ++threadCount_) std::thread([this] { help(); }).detach();
    } catch (const std::exception&) {  // no more threads or no memory
    }
  }

  [[noreturn]] void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](Job* job) { return job->helpersWanted > 0; });
      if (found == jobs_.end()) {
        wake_.wait(lock);
        continue;
      }
      Job& job = **found;
      --job.helpersWanted;
      ++job.helpersActive;
      lock.unlock();
      job.drain();
      lock.lock();
      if (--job.helpersActive == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::list<Job*> jobs_;
  uint32_t threadCount_ = 0;
};

}  // namespace

uint32_t coreCount() {
  static const uint32_t count = std::max(1u, std::thread::hardware_concurrency());  // hardware_concurrency reads files
  return count;
}

void runInParallel(uint64_t count, uint32_t workers, const std::function<void(uint64_t, uint64_t)>& body) {
  if (count == 0) return;
  // Small parts let the workers finish at about the same time.
  constexpr uint64_t kPartsPerWorker = 16;
  const uint32_t helpers = static_cast<uint32_t>(std::min<uint64_t>(workers, count)) - 1;
  if (helpers == 0) return body(0, count);
  const uint64_t part = std::max<uint64_t>(1, count / (workers * kPartsPerWorker));
  Job job{.count = count, .part = part, .body = &body, .helpersWanted = helpers};
  WorkerPool::shared().run(job);
}

}  // namespace mnk::host
