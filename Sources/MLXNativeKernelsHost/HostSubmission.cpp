#include "HostSubmission.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <numeric>
#include <random>
#include <system_error>

#include "Checking/CheckedRun.hpp"
#include "HostOptions.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

Result<std::unique_ptr<HostQueue>> HostQueue::make() {
  std::unique_ptr<HostQueue> queue(new HostQueue);
  try {
    queue->thread_ = std::thread(&HostQueue::drain, queue->state_);
  } catch (const std::system_error& error) {
    return hostError(ErrorCode::outOfMemory, "no thread for the device's queue", error.what(),
                     "a process that may start one more thread",
                     "Raise the limit on threads, or release other devices first.", true);
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

Error faultError(const DispatchJob& job, const Fault& fault) {
  const bool memory = fault.kind == FaultKind::outOfMemory;
  return hostError(memory ? ErrorCode::outOfMemory : ErrorCode::deviceFault,
                   fmt::format("{} stopped{}", job.name(), job.inSubmission()), fault.text,
                   memory ? "memory for the lanes of a threadgroup" : "a kernel that runs to its end",
                   memory ? "Use fewer workers or smaller threadgroups."
                          : "Correct the kernel or its dispatch." + replayHint(job.options),
                   memory);
}

Launch makeLaunch(const DispatchJob& job, const Arguments& arguments, const Watcher* watcher) {
  const ReadyDispatch& ready = job.ready;
  Launch launch{};
  launch.kernel = &job.pipeline().kernel();
  launch.arguments = &arguments;
  launch.orderSeed = job.options.orderSeed;
  launch.poison = job.options.checking != HostOptions::Checking::off;
  launch.watcher = watcher;
  const Grid& grid = ready.dispatch.grid;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t size = ready.threadgroup[axis];
    const uint32_t extent = grid.extent[axis];
    launch.threadgroup[axis] = size;
    const bool inThreads = grid.unit == Grid::Unit::threads;
    launch.groups[axis] = inThreads ? extent / size + (extent % size != 0) : extent;
    launch.threads[axis] = inThreads ? extent : extent * size;
  }
  for (const ThreadgroupMemory& memory : ready.dispatch.threadgroupMemory) {
    launch.threadgroupBytes[memory.index] = memory.bytes;
  }
  return launch;
}

// Holds a library's worker for one part of a dispatch.
class BorrowedWorker {
 public:
  explicit BorrowedWorker(HostLibrary& library) : library_(library), worker_(library.takeWorker()) {}
  ~BorrowedWorker() {
    if (worker_) library_.giveBack(worker_);
  }
  Worker* get() const { return worker_; }
  // For a worker whose lanes did not finish.
  void discard() {
    library_.module().destroyWorker(worker_);
    worker_ = nullptr;
  }

 private:
  HostLibrary& library_;
  Worker* worker_;
};

// Threadgroup indices in the seed's order: a random permutation or, if a list would be too long, a stride that is
// coprime to the count and so visits each once.
class ThreadgroupOrder {
 public:
  ThreadgroupOrder(uint64_t count, uint64_t seed) : count_(count) {
    constexpr uint64_t kMaxListed = 65536;
    if (seed == 0 || count < 2) return;
    std::mt19937_64 random(seed);
    if (count <= kMaxListed) {
      list_.resize(count);
      std::iota(list_.begin(), list_.end(), 0u);
      std::shuffle(list_.begin(), list_.end(), random);
      return;
    }
    start_ = random() % count;
    stride_ = random() % count;
    while (std::gcd(stride_, count) != 1) ++stride_;
  }
  uint64_t operator[](uint64_t index) const {
    if (!list_.empty()) return list_[index];
    return static_cast<uint64_t>((static_cast<unsigned __int128>(index) * stride_ + start_) % count_);
  }

 private:
  std::vector<uint32_t> list_;
  uint64_t count_, start_ = 0, stride_ = 1;
};

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<void> runUnder(HostOptions::Checking checking, const DispatchJob& job,
                      std::vector<DispatchTrace>& sinceBarrier) {
  if (checking == HostOptions::Checking::off) return runDispatch(job);
  const ReadyDispatch whole = withMemory(job.ready, job.memory);
  const DispatchJob checked{whole, job.memory, job.options, job.label};
  return checking == HostOptions::Checking::guarded ? runGuarded(checked) : runChecked(checked, sinceBarrier);
}

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

HostPipeline& DispatchJob::pipeline() const {
  return static_cast<HostPipeline&>(*ready.pipeline);
}

std::string DispatchJob::name() const {
  return fmt::format("kernel {} of library {}", pipeline().kernel().name, pipeline().library().label());
}

std::string DispatchJob::inSubmission() const {
  return label.empty() ? "" : fmt::format(" in '{}'", label);
}

std::string DispatchJob::op() const {
  return ready.dispatch.kind.empty() ? "Host device" : ready.dispatch.kind;
}

Arguments bindArguments(const DispatchJob& job) {
  Arguments arguments = job.pipeline().constants();
  for (size_t i = 0; i < job.memory.size(); ++i) {
    const auto& [buffer, offset] = job.memory[i];
    arguments.buffers[job.ready.dispatch.buffers[i].index] = buffer->contents() + offset;
  }
  for (const InlineBytes& bytes : job.ready.dispatch.inlines) {
    arguments.buffers[bytes.index] = const_cast<std::byte*>(bytes.bytes.data());
  }
  return arguments;
}

Result<void> runThreadgroups(const DispatchJob& job, const Arguments& arguments, const Watcher* watcher) {
  HostPipeline& pipeline = job.pipeline();
  const Launch launch = makeLaunch(job, arguments, watcher);
  const uint64_t count = uint64_t(launch.groups[0]) * launch.groups[1] * launch.groups[2];
  const ThreadgroupOrder order(count, job.options.orderSeed);

  std::atomic<bool> failed = false;
  std::mutex mutex;
  Fault firstFault{};
  const auto note = [&](const Fault& fault) {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) firstFault = fault;
  };
  const uint32_t wanted = job.options.workers ? job.options.workers : coreCount();
  runInParallel(count, watcher ? 1 : wanted, [&](uint64_t begin, uint64_t end) {
    BorrowedWorker worker(pipeline.library());
    if (!worker.get()) return note({FaultKind::outOfMemory, "no memory for a worker"});
    Fault fault{};
    const auto runAll = [&] {
      for (uint64_t i = begin; i < end && !failed.load(std::memory_order_relaxed); ++i) {
        pipeline.library().module().run(worker.get(), &launch, order[i], &fault);
        if (fault.kind != FaultKind::none) return;
      }
    };
    if (!watcher) {
      runAll();
    } else if (const std::string_view trap = runCatchingTraps(runAll); !trap.empty()) {
      worker.discard();
      fault.kind = FaultKind::stopped;
      trap.copy(fault.text, sizeof fault.text - 1);
    }
    if (fault.kind != FaultKind::none) note(fault);
  });
  if (failed) return faultError(job, firstFault);
  return {};
}

Result<void> runDispatch(const DispatchJob& job) {
  return runThreadgroups(job, bindArguments(job), nullptr);
}

HostSubmission::HostSubmission(std::shared_ptr<Device> device, HostQueue& queue, const HostOptions& options,
                               std::string_view label)
    : device_(std::move(device)), queue_(queue), options_(options), label_(label) {}

Result<void> HostSubmission::dispatch(SharedDispatch shared, std::span<BoundMemory> memory) {
  if (!dynamic_cast<const HostPipeline*>(shared->pipeline.get())) {
    return hostError(ErrorCode::invalidArgument, "the pipeline is not of a Host device", shared->dispatch.kernel.text(),
                     "a pipeline of this device", "Make the pipeline with the device that runs it.");
  }
  if (steps_.dispatches.empty()) {  // reserve for some layers
    steps_.dispatches.reserve(64);
    steps_.memory.reserve(1024);
    steps_.barriers.reserve(64);
  }
  const size_t firstMemory = steps_.memory.size();
  steps_.memory.insert(steps_.memory.end(), std::move_iterator(memory.begin()), std::move_iterator(memory.end()));
  steps_.dispatches.push_back({std::move(shared), firstMemory});
  return {};
}

void HostSubmission::barrier() {
  const size_t before = steps_.dispatches.size();
  if (before > (steps_.barriers.empty() ? 0 : steps_.barriers.back())) steps_.barriers.push_back(before);
}

// One shared object, so that the queue's copy of the work holds the only references.
struct HostSubmission::Work {
  std::shared_ptr<Device> device;
  HostOptions options;
  std::string label;
  std::map<std::string, double> opSeconds;  // has all ops if they are measured
  Steps steps;
  std::function<void(SubmissionReport)> finished;

  Result<void> run() {
    std::minstd_rand random(static_cast<uint32_t>(options.orderSeed));
    steps.barriers.push_back(steps.dispatches.size());
    const std::span<Step> all = steps.dispatches;
    size_t begin = 0;
    for (const size_t end : steps.barriers) {
      const auto group = all.subspan(begin, end - begin);
      if (options.orderSeed != 0) std::shuffle(group.begin(), group.end(), random);
      std::vector<DispatchTrace> sinceBarrier;
      for (const auto& [shared, firstMemory] : group) {
        const auto memory = std::span<const BoundMemory>(steps.memory).subspan(firstMemory);
        const DispatchJob job{*shared, memory.first(shared->dispatch.buffers.size()), options, label};
        const auto start = Clock::now();
        MNK_TRY(runUnder(options.checking, job, sinceBarrier));
        if (const auto sum = opSeconds.find(shared->dispatch.kind); sum != opSeconds.end()) {
          sum->second += secondsSince(start);
        }
      }
      begin = end;
    }
    return {};
  }

  void runAndReport() noexcept {
    const auto start = Clock::now();
    SubmissionReport report{.outcome = guarded("Host device", [&] { return run(); })};
    report.deviceSeconds = secondsSince(start);
    report.opSeconds = std::move(opSeconds);
    // Release everything before reporting that the work is done.
    steps = {};
    device.reset();
    try {
      if (finished) finished(std::move(report));
    } catch (...) {  // the caller's code; there is no one to report to
    }
  }
};

Result<void> HostSubmission::prepare(std::function<void(SubmissionReport)> finished) {
  std::map<std::string, double> opSeconds;
  for (const Step& step : steps_.dispatches) {
    if (measuresOps_) opSeconds.try_emplace(step.shared->dispatch.kind, 0);
  }
  auto work = std::make_shared<Work>(device_, options_, label_, std::move(opSeconds), Steps(), std::move(finished));
  HostQueue::Work queued;
  queued.emplace_back([work] { work->runAndReport(); });
  prepared_ = std::move(work);
  queued_ = std::move(queued);
  return {};
}

void HostSubmission::discardPrepared() noexcept {
  prepared_.reset();
  queued_.clear();
}

Result<void> HostSubmission::commit() noexcept {
  prepared_->steps = std::move(steps_);
  prepared_.reset();
  queue_.push(queued_);
  device_.reset();
  return {};
}

}  // namespace mnk::host
