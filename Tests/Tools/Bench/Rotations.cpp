#include "HostLibrary.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "Ops.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint32_t kHeads = 40;  // of queries and keys together
constexpr uint32_t kHeadDim = 128;

struct TableParams {
  uint32_t pairs, heads, headsPerGroup;
  int32_t firstPosition;
};

struct Problem {
  Tensor from, into, table;
  Plan direct = {}, byTable = {}, makeTable = {};
};

// Both dispatches of the table variant, with the frequencies of MultiRoPE's plan.
void planTable(Problem& problem, uint32_t tokens) {
  auto library = need(host::linkedLibrary("bench"));
  constexpr uint32_t kHeadsPerGroup = 4;
  const TableParams params{kHeadDim / 2, kHeads, kHeadsPerGroup, 0};
  Dispatch make, rotate;
  make.kernel = {library, "rotaryTable", {}};
  make.inlines = {InlineBytes::of(0, params)};
  for (const InlineBytes& inlined : problem.direct.dispatches.at(0).inlines) {
    if (inlined.index == kMultiRoPEFrequencies) make.inlines.push_back({1, inlined.bytes});
  }
  make.buffers = {Binding::whole(2, problem.table, Access::write)};
  make.grid.extent = {params.pairs, tokens, 1};
  rotate.kernel = {library, "rotateByTable", {}};
  rotate.inlines = {InlineBytes::of(0, params)};
  rotate.buffers = {Binding::whole(1, problem.table, Access::read), Binding::whole(2, problem.from, Access::read),
                    Binding::whole(3, problem.into, Access::write)};
  rotate.grid.extent = {params.pairs / 4, (kHeads + kHeadsPerGroup - 1) / kHeadsPerGroup, tokens};
  problem.makeTable = {.op = "bench", .dispatches = {make}};
  problem.byTable = {.op = "bench", .dispatches = {rotate}};
}

Problem makeProblem(const std::shared_ptr<Device>& device, uint32_t tokens) {
  Problem problem{.from = makeFilled(device, DType::f16, {tokens, kHeads, kHeadDim}, -1, 1),
                  .into = makeTensor(device, DType::f16, {tokens, kHeads, kHeadDim}),
                  .table = makeTensor(device, DType::f32, {tokens, kHeadDim})};
  problem.direct = need(plan(MultiRoPE{.queries = problem.from, .rotatedQueries = problem.into}));
  planTable(problem, tokens);
  return problem;
}

std::vector<std::byte> rotatedBy(const Plan& plan, const Problem& problem, const std::shared_ptr<Device>& device) {
  secondsOf(device, plan);
  std::vector<std::byte> bytes(problem.into.byteCount());
  need(problem.into.read(bytes));
  return bytes;
}

void bench(uint32_t workers, uint32_t tokens) {
  auto device = need(host::makeDevice({.workers = workers}));
  auto problem = makeProblem(device, tokens);
  secondsOf(device, problem.makeTable);
  if (rotatedBy(problem.direct, problem, device) != rotatedBy(problem.byTable, problem, device)) {
    throw Error{.op = "bench", .what = "rotations by a table have other bits than those of MultiRoPE"};
  }
  auto least = leastSeconds(kRepetitions, {[&] { return copySeconds(problem.into, problem.from, workers); },
                                           [&] { return secondsOf(device, problem.direct); },
                                           [&] { return secondsOf(device, problem.makeTable); },
                                           [&] { return secondsOf(device, problem.byTable); }});
  const double copy = least.at(0), kernel = least.at(1), makeTable = least.at(2), table = least.at(3);
  const double gigabytes = static_cast<double>(problem.from.byteCount()) / 1e9;
  fmt::print(
      "{}   {:5} tokens   memcpy {:6.2f} GB/s   kernel {:6.2f} GB/s   ratio {:.2f}   by a table {:6.2f} GB/s, made in "
      "{:.0f}% of that time\n",
      workersText(workers), tokens, gigabytes / copy, gigabytes / kernel, kernel / copy, gigabytes / table,
      100 * makeTable / table);
}

}  // namespace

void benchRotations() {
  fmt::print("\nMultiRoPE, {} heads of {}, f16, half-split, out of place; bytes written, and as many read\n", kHeads,
             kHeadDim);
  for (const uint32_t workers : {1u, 2u}) {
    for (const uint32_t tokens : {1u, 32u, 2048u}) bench(workers, tokens);
  }
}

}  // namespace mnk::bench
