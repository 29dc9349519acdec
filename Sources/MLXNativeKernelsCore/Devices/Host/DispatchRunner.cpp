#include "DispatchRunner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>

#include "Devices/Host/HostPipeline.hpp"
#include "Devices/Host/WorkerPool.hpp"

namespace mnk::host {

namespace {

Error faultError(const HostPipeline& pipeline, const Fault& fault, std::string_view label) {
  const bool memory = fault.kind == FaultKind::outOfMemory;
  return Error{.code = memory ? ErrorCode::outOfMemory : ErrorCode::deviceFault,
               .op = "Host device",
               .what = fmt::format("kernel {} of library {} stopped{}", pipeline.kernel().name,
                                   pipeline.library().label(), label.empty() ? "" : fmt::format(" in '{}'", label)),
               .got = fault.text,
               .expected = memory ? "memory for the lanes of a threadgroup" : "a kernel that runs to its end",
               .fix = memory ? "Use fewer workers or smaller threadgroups." : "Correct the kernel or its dispatch.",
               .retryable = memory};
}

Launch makeLaunch(const ReadyDispatch& ready, const HostPipeline& pipeline, const Arguments& arguments,
                  const Options& options) {
  Launch launch{};
  launch.kernel = &pipeline.kernel();
  launch.arguments = &arguments;
  launch.orderSeed = options.orderSeed;
  launch.poison = options.poison;
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

Arguments bindArguments(const ReadyDispatch& ready, const HostPipeline& pipeline) {
  Arguments arguments = pipeline.constants();
  for (const Binding& binding : ready.dispatch.buffers) {
    arguments.buffers[binding.index] = binding.buffer->contents() + binding.offset;
  }
  for (const InlineBytes& bytes : ready.dispatch.inlines) {
    arguments.buffers[bytes.index] = const_cast<std::byte*>(bytes.bytes.data());
  }
  return arguments;
}

// A worker of a library for the time of one part.
class BorrowedWorker {
 public:
  explicit BorrowedWorker(HostLibrary& library) : library_(library), worker_(library.takeWorker()) {}
  ~BorrowedWorker() {
    if (worker_) library_.giveBack(worker_);
  }
  Worker* get() const { return worker_; }

 private:
  HostLibrary& library_;
  Worker* worker_;
};

// Threadgroup numbers in the order of the seed: any permutation, or, where a list of them would be long, a stride that
// shares no factor with the count and so visits each once.
class ThreadgroupOrder {
 public:
  ThreadgroupOrder(uint64_t count, uint64_t seed) : count_(count) {
    constexpr uint64_t kMostListed = 65536;
    if (seed == 0 || count < 2) return;
    std::mt19937_64 random(seed);
    if (count <= kMostListed) {
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

Result<void> runDispatch(const ReadyDispatch& ready, const Options& options, std::string_view label) {
  auto& pipeline = static_cast<HostPipeline&>(*ready.pipeline);
  const Arguments arguments = bindArguments(ready, pipeline);
  const Launch launch = makeLaunch(ready, pipeline, arguments, options);
  const uint64_t count = uint64_t(launch.groups[0]) * launch.groups[1] * launch.groups[2];
  const ThreadgroupOrder order(count, options.orderSeed);

  std::atomic<bool> failed = false;
  std::mutex mutex;
  Fault firstFault{};
  const auto note = [&](const Fault& fault) {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) firstFault = fault;
  };
  const uint32_t workers = options.workers ? options.workers : coreCount();
  runInParallel(count, workers, [&](uint64_t begin, uint64_t end) {
    const BorrowedWorker worker(pipeline.library());
    if (!worker.get()) return note({FaultKind::outOfMemory, "no memory for a worker"});
    Fault fault{};
    for (uint64_t i = begin; i < end && !failed.load(std::memory_order_relaxed); ++i) {
      pipeline.library().module().run(worker.get(), &launch, order[i], &fault);
      if (fault.kind != FaultKind::none) return note(fault);
    }
  });
  if (failed) return faultError(pipeline, firstFault, label);
  return {};
}

}  // namespace mnk::host
