#include "DispatchRunner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>

#include "Checking/Traps.hpp"
#include "HostOptions.hpp"
#include "WorkerPool.hpp"

namespace mnk::host {

namespace {

Error faultError(const DispatchJob& job, const Fault& fault) {
  const bool memory = fault.kind == FaultKind::outOfMemory;
  return Error{.code = memory ? ErrorCode::outOfMemory : ErrorCode::deviceFault,
               .op = "Host device",
               .what = fmt::format("{} stopped{}", job.name(), job.inSubmission()),
               .got = fault.text,
               .expected = memory ? "memory for the lanes of a threadgroup" : "a kernel that runs to its end",
               .fix = memory ? "Use fewer workers or smaller threadgroups."
                             : "Correct the kernel or its dispatch." + replayHint(job.options),
               .retryable = memory};
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

}  // namespace

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

}  // namespace mnk::host
