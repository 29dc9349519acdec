#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "HostLibrary.hpp"
#include "NativeAttention.hpp"
#include "Timing.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench {

namespace {

struct KernelParams {
  uint32_t keys, capacity, splits;
  float scale;
};

// Inputs and outputs in device buffers.
struct Problem {
  std::shared_ptr<Device> device;
  std::shared_ptr<Buffer> queries, keys, values, partial, state, output;
  KernelParams params;
  AttentionSizes sizes;

  static Result<Problem> make(std::shared_ptr<Device> device, const AttentionSizes& sizes) {
    Problem problem{.device = std::move(device), .sizes = sizes};
    const uint64_t cacheBytes = uint64_t(sizes.kvHeads) * sizes.keys * kHeadDim * 2;
    const uint64_t headBytes = uint64_t(sizes.queryHeads) * kHeadDim * 4;
    const std::pair<std::shared_ptr<Buffer> Problem::*, uint64_t> buffers[] = {
        {&Problem::queries, headBytes},
        {&Problem::keys, cacheBytes},
        {&Problem::values, cacheBytes},
        {&Problem::partial, headBytes * sizes.splits},
        {&Problem::state, uint64_t(sizes.queryHeads) * sizes.splits * 8},
        {&Problem::output, headBytes}};
    for (const auto& [member, bytes] : buffers) {
      auto buffer = problem.device->makeBuffer(bytes);
      if (!buffer) return std::move(buffer).error();
      problem.*member = *buffer;
    }
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto fill = [&]<typename T>(Buffer& buffer, T, float range) {
      T* values = reinterpret_cast<T*>(buffer.contents());
      for (uint64_t i = 0; i < buffer.length() / sizeof(T); ++i) values[i] = T(uniform(random) * range);
    };
    fill(*problem.queries, 0.0f, 3);
    fill(*problem.keys, _Float16(0), 1);
    fill(*problem.values, _Float16(0), 1);
    problem.params = {sizes.keys, sizes.keys, sizes.splits, 1 / std::sqrt(float(kHeadDim))};
    return problem;
  }

  const float* outputs() const { return reinterpret_cast<const float*>(output->contents()); }
};

float* floats(const std::shared_ptr<Buffer>& buffer) {
  return reinterpret_cast<float*>(buffer->contents());
}

Binding bindingOf(uint32_t index, const std::shared_ptr<Buffer>& buffer, Access access) {
  Binding binding{.index = index, .buffer = buffer, .length = buffer->length()};
  const Region all{.rowBytes = buffer->length()};
  (access == Access::read ? binding.reads : binding.writes).push_back(all);
  return binding;
}

Result<Plan> planOf(const Problem& problem) {
  auto library = host::linkedLibrary("bench");
  if (!library) return std::move(library).error();
  const AttentionSizes& sizes = problem.sizes;
  Dispatch attend, reduce;
  attend.kernel = {*library, "benchAttention", {{60, false}, {61, 0u}}};
  attend.buffers = {bindingOf(0, problem.queries, Access::read), bindingOf(1, problem.keys, Access::read),
                    bindingOf(2, problem.values, Access::read), bindingOf(3, problem.partial, Access::write),
                    bindingOf(4, problem.state, Access::write)};
  attend.inlines = {InlineBytes::of(5, problem.params)};
  attend.grid = {
      Grid::Unit::threadgroups, {sizes.kvHeads, sizes.splits, 1}, {32 * sizes.queryHeads / sizes.kvHeads, 1, 1}};
  reduce.kernel = {*library, "benchAttentionReduce", {}};
  reduce.buffers = {bindingOf(0, problem.partial, Access::read), bindingOf(1, problem.state, Access::read),
                    bindingOf(2, problem.output, Access::write)};
  reduce.inlines = {InlineBytes::of(3, sizes.splits)};
  reduce.threadgroupMemory = {{0, 128}};
  reduce.grid = {Grid::Unit::threadgroups, {sizes.queryHeads, 1, 1}, {kHeadDim, 1, 1}};
  return Plan{.op = "bench", .dispatches = {attend, reduce}};
}

}  // namespace

Result<AttentionSeconds> timeAttention(const host::Options& options, const AttentionSizes& sizes,
                                       uint32_t repetitions) {
  auto device = host::makeDevice(options);
  if (!device) return std::move(device).error();
  auto problem = Problem::make(*device, sizes);
  if (!problem) return std::move(problem).error();
  auto work = planOf(*problem);
  if (!work) return std::move(work).error();
  const NativeAttention native{.queries = floats(problem->queries),
                               .keys = problem->keys->contents(),
                               .values = problem->values->contents(),
                               .partial = floats(problem->partial),
                               .state = floats(problem->state),
                               .output = floats(problem->output),
                               .kvHeads = sizes.kvHeads,
                               .queriesPerHead = sizes.queryHeads / sizes.kvHeads,
                               .keyCount = sizes.keys,
                               .capacity = sizes.keys,
                               .splits = sizes.splits,
                               .scale = problem->params.scale,
                               .workers = options.workers ? options.workers : host::coreCount()};

  AttentionSeconds best{.native = INFINITY, .kernel = INFINITY};
  std::vector<float> nativeOutput(size_t(sizes.queryHeads) * kHeadDim);
  for (uint32_t i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    runNativeAttention(native);
    best.native =
        std::min(best.native, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::memcpy(nativeOutput.data(), problem->outputs(), nativeOutput.size() * sizeof(float));
    auto seconds = secondsOf(*device, *work);
    if (!seconds) return std::move(seconds).error();
    best.kernel = std::min(best.kernel, *seconds);
  }
  for (size_t i = 0; i < nativeOutput.size(); ++i) {
    const double difference = std::abs(double(nativeOutput[i]) - problem->outputs()[i]);
    best.largestDifference = std::max(best.largestDifference, difference);
  }
  return best;
}

}  // namespace mnk::bench
