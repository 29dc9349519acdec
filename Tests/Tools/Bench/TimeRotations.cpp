#include "TimeRotations.hpp"

#include <algorithm>
#include <cmath>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Timing.hpp"
#include "WorkerPool.hpp"

namespace mnk::bench {

namespace {

struct TableParams {
  uint32_t pairs, heads, headsPerGroup;
  int32_t firstPosition;
};

struct Problem {
  Tensor from, into, table;
  Plan direct, byTable, makeTable;
};

// Both dispatches of the table variant, with the frequencies of MultiRoPE's plan.
Result<void> planTable(Problem& problem, const RotationSizes& sizes) {
  auto library = host::linkedLibrary("bench");
  if (!library) return std::move(library).error();
  constexpr uint32_t kHeadsPerGroup = 4;
  const TableParams params{sizes.headDim / 2, sizes.heads, kHeadsPerGroup, 0};
  Dispatch make, rotate;
  make.kernel = {*library, "rotaryTable", {}};
  make.inlines = {InlineBytes::of(0, params)};
  for (const InlineBytes& inlined : problem.direct.dispatches.at(0).inlines) {
    if (inlined.index == kMultiRoPEFrequencies) make.inlines.push_back({1, inlined.bytes});
  }
  make.buffers = {Binding::whole(2, problem.table, Access::write)};
  make.grid.extent = {params.pairs, sizes.tokens, 1};
  rotate.kernel = {*library, "rotateByTable", {}};
  rotate.inlines = {InlineBytes::of(0, params)};
  rotate.buffers = {Binding::whole(1, problem.table, Access::read), Binding::whole(2, problem.from, Access::read),
                    Binding::whole(3, problem.into, Access::write)};
  rotate.grid.extent = {params.pairs / 4, (sizes.heads + kHeadsPerGroup - 1) / kHeadsPerGroup, sizes.tokens};
  problem.makeTable = {.op = "bench", .dispatches = {make}};
  problem.byTable = {.op = "bench", .dispatches = {rotate}};
  return {};
}

Result<Problem> makeProblem(const std::shared_ptr<Device>& device, const RotationSizes& sizes) {
  Problem problem;
  for (Tensor* tensor : {&problem.from, &problem.into}) {
    auto result = makeTensor(device, DType::f16, {sizes.tokens, sizes.heads, sizes.headDim});
    if (!result) return std::move(result).error();
    *tensor = *result;
  }
  auto table = makeTensor(device, DType::f32, {sizes.tokens, sizes.headDim});
  if (!table) return std::move(table).error();
  problem.table = *table;
  auto direct = plan(MultiRoPE{.queries = problem.from, .rotatedQueries = problem.into});
  if (!direct) return std::move(direct).error();
  problem.direct = *direct;
  if (auto planned = planTable(problem, sizes); !planned) return std::move(planned).error();
  return problem;
}

}  // namespace

Result<RotationSeconds> timeRotations(const host::Options& options, const RotationSizes& sizes, uint32_t repetitions) {
  auto device = host::makeDevice(options);
  if (!device) return std::move(device).error();
  auto problem = makeProblem(*device, sizes);
  if (!problem) return std::move(problem).error();
  RotationSeconds best{.bytes = problem->from.byteCount(),
                       .kernel = INFINITY,
                       .table = INFINITY,
                       .makeTable = INFINITY,
                       .copy = INFINITY};
  const uint32_t workers = options.workers ? options.workers : host::coreCount();
  for (uint32_t i = 0; i < repetitions; ++i) {
    best.copy = std::min(best.copy, copySeconds(problem->into, problem->from, workers));
    const std::pair<const Plan*, double*> timed[] = {
        {&problem->direct, &best.kernel}, {&problem->makeTable, &best.makeTable}, {&problem->byTable, &best.table}};
    for (const auto& [plan, least] : timed) {
      auto seconds = secondsOf(*device, *plan);
      if (!seconds) return std::move(seconds).error();
      *least = std::min(*least, *seconds);
    }
  }
  return best;
}

}  // namespace mnk::bench
