#include "Tuning.hpp"

#include <cmath>
#include <cstdio>

#include "Measurement.hpp"
#include "Ops/FlashDecodeLayout.hpp"
#include "Ops/FlashDecodeTuning.hpp"
#include "Support/Format.hpp"

namespace mnk::bench::decode {

namespace {

constexpr double kBudget = 0.1;  // seconds for a candidate at a shape
constexpr double kWorthAChange = 1.03;
constexpr uint32_t kWidth = 32;

// A shape with its memory.
struct Trial {
  DecodeCase shape;
  DecodeProblem problem;
};

// Kernels take the number of simdgroups from the dispatch; only their threadgroup memory depends on it.
void setSimdgroups(Dispatch& dispatch, uint32_t simdgroups, uint32_t bytes) {
  dispatch.threadgroupMemory = {{0, bytes}};
  dispatch.grid.threadgroup[0] = simdgroups * kWidth;
}

bool isReduce(const Dispatch& dispatch) {
  return dispatch.kernel.function.starts_with("flashDecodeReduce");
}

// Whether all of them launch the same.
bool areAlike(const std::vector<std::optional<Plan>>& plans) {
  const auto launches = [](const std::optional<Plan>& plan) {
    std::vector<std::pair<Size3, Size3>> grids;
    for (const Dispatch& dispatch : plan ? plan->dispatches : std::vector<Dispatch>()) {
      grids.emplace_back(dispatch.grid.extent, dispatch.grid.threadgroup);
    }
    return grids;
  };
  for (const auto& plan : plans) {
    if (launches(plan) != launches(plans.front())) return false;
  }
  return true;
}

bool fits(const Device& device, const Plan& plan) {
  for (const Dispatch& dispatch : plan.dispatches) {
    if (dispatch.grid.threadgroup[0] > device.limits().maxThreadsPerThreadgroup) return false;
    uint32_t bytes = 0;
    for (const ThreadgroupMemory& memory : dispatch.threadgroupMemory) bytes += memory.bytes;
    if (bytes > device.limits().maxThreadgroupMemoryBytes) return false;
  }
  return true;
}

class Tuner {
 public:
  explicit Tuner(std::shared_ptr<Device> device)
      : device_(std::move(device)), profile_(device_->profile()), tuning_(tuningFor(profile_)) {
    if (profile_.cores != 0) tuning_.cores = profile_.cores;
  }

  const FlashDecodeTuning& tuning() const { return tuning_; }
  std::string family() const { return std::string(profile_.family); }

  Result<std::vector<Trial>> trials(const std::vector<DecodeCase>& shapes) const {
    std::vector<Trial> trials;
    for (const DecodeCase& shape : shapes) {
      auto problem = DecodeProblem::make(device_, shape, 1);
      if (!problem) return std::move(problem).error();
      trials.push_back({shape, std::move(*problem)});
    }
    return trials;
  }

  // The plan under a tuning; nothing where it does not fit the device.
  Result<std::optional<Plan>> planned(const Trial& trial, const FlashDecodeTuning& tuning,
                                      FlashDecodeKernel kernel) const {
    AttentionOptions options{.splits = 1, .kernel = kernel};
    auto whole = trial.problem.plans(options);
    if (!whole) return std::move(whole).error();
    const Size3& extent = whole->at(0).dispatches.at(0).grid.extent;
    options.splits = automaticSplits(tuning, profile_, uint64_t{extent[1]} * extent[2], trial.shape.length);
    auto plans = trial.problem.plans(options);
    if (!plans) return std::move(plans).error();
    Plan& plan = plans->at(0);
    FlashDecode op = trial.problem.ops[0];
    op.options = options;
    const auto layout = FlashDecodeLayout::of(op, {.profile = profile_, .hasMatrices = true});
    const uint32_t simdgroups = layout.usesMatrices ? tuning.matrixSimdgroups : tuning.vectorSimdgroups;
    for (Dispatch& dispatch : plan.dispatches) {
      if (isReduce(dispatch)) {
        setSimdgroups(dispatch, tuning.reduceSimdgroups,
                      static_cast<uint32_t>(mergingBytes(tuning.reduceSimdgroups, layout.valueDim)));
      } else {
        setSimdgroups(dispatch, simdgroups, layout.threadgroupBytes(op, simdgroups));
      }
    }
    if (!fits(*device_, plan)) return std::optional<Plan>();
    return std::optional(std::move(plan));
  }

  // Takes the value with which all trials together are fastest, each counted in proportion to its own time, unless the
  // value that is there comes close.
  Result<void> choose(const char* name, uint32_t FlashDecodeTuning::*field, const std::vector<uint32_t>& values,
                      const std::vector<Trial>& trials, FlashDecodeKernel kernel) {
    std::vector<double> logarithms(values.size(), 0);
    size_t counted = 0;
    for (const Trial& trial : trials) {
      std::vector<std::optional<Plan>> plans;
      for (const uint32_t value : values) {
        FlashDecodeTuning candidate = tuning_;
        candidate.*field = value;
        auto plan = planned(trial, candidate, kernel);
        if (!plan) return std::move(plan).error();
        plans.push_back(std::move(*plan));
      }
      if (areAlike(plans)) continue;
      ++counted;
      auto seconds = medianSeconds(device_, plans, kBudget);
      if (!seconds) return std::move(seconds).error();
      for (size_t i = 0; i < values.size(); ++i) logarithms[i] += std::log(seconds->at(i));
    }
    fmt::print("  {}:", name);
    if (counted == 0) {
      fmt::print("  makes no difference\n");
      return {};
    }
    double least = INFINITY;
    const uint32_t before = tuning_.*field;
    for (size_t i = 0; i < values.size(); ++i) {
      const double mean = std::exp(logarithms[i] / static_cast<double>(counted));
      fmt::print("  {}: {}", values[i], std::isinf(mean) ? "too large" : fmt::format("{:.1f} us", mean * 1e6));
      const double weighed = values[i] == before ? mean / kWorthAChange : mean;
      if (weighed < least) {
        least = weighed;
        tuning_.*field = values[i];
      }
    }
    fmt::print("  -> {}\n", tuning_.*field);
    std::fflush(stdout);
    return {};
  }

  // The least group from which on the matrix kernel is the faster one.
  Result<void> chooseMatrixRows(const char* name, uint32_t FlashDecodeTuning::*field, const Storage& storage) {
    fmt::print("  {}:", name);
    tuning_.*field = UINT32_MAX;
    for (const uint64_t group : {uint64_t{1}, uint64_t{2}, uint64_t{4}, uint64_t{8}, uint64_t{16}}) {
      auto made = trials({{.storage = storage, .group = group}});
      if (!made) return std::move(made).error();
      std::vector<std::optional<Plan>> plans;
      for (const FlashDecodeKernel kernel : {FlashDecodeKernel::vector, FlashDecodeKernel::matrix}) {
        auto plan = planned(made->at(0), tuning_, kernel);
        if (!plan) return std::move(plan).error();
        plans.push_back(std::move(*plan));
      }
      auto seconds = medianSeconds(device_, plans, kBudget);
      if (!seconds) return std::move(seconds).error();
      const std::vector<double>& taken = *seconds;
      fmt::print("  {}: {:.1f} and {:.1f} us", group, taken[0] * 1e6, taken[1] * 1e6);
      std::fflush(stdout);
      if (taken[1] >= taken[0]) {
        tuning_.*field = UINT32_MAX;
      } else if (tuning_.*field == UINT32_MAX) {
        tuning_.*field = static_cast<uint32_t>(group);
      }
    }
    fmt::print("\n");
    return {};
  }

 private:
  std::shared_ptr<Device> device_;
  DeviceProfile profile_;
  FlashDecodeTuning tuning_;
};

void printRow(const Tuner& tuner) {
  const FlashDecodeTuning& tuning = tuner.tuning();
  fmt::print("\nFor Ops/FlashDecodeTuning.cpp:\n    {{.family = \"{}\"", tuner.family());
  const std::pair<const char*, uint32_t> fields[] = {{"vectorSimdgroups", tuning.vectorSimdgroups},
                                                     {"matrixSimdgroups", tuning.matrixSimdgroups},
                                                     {"reduceSimdgroups", tuning.reduceSimdgroups},
                                                     {"threadgroupsPerCore", tuning.threadgroupsPerCore},
                                                     {"leastKeys", tuning.leastKeys},
                                                     {"denseMatrixRows", tuning.denseMatrixRows},
                                                     {"codedMatrixRows", tuning.codedMatrixRows},
                                                     {"mostSplitsTogether", tuning.mostSplitsTogether},
                                                     {"cores", tuning.cores}};
  for (const auto& [name, value] : fields) {
    if (value != UINT32_MAX) fmt::print(",\n     .{} = {}", name, value);
  }
  fmt::print("}},\n\n");
}

}  // namespace

Result<void> tune(const std::shared_ptr<Device>& device) {
  Tuner tuner(device);
  using T = FlashDecodeTuning;
  constexpr auto vector = FlashDecodeKernel::vector;
  constexpr auto matrix = FlashDecodeKernel::matrix;
  const Storage f16 = Storage::f16(), coded = Storage::turbo(4);
  auto shorter = tuner.trials({{.storage = f16, .length = 512},
                               {.storage = f16, .length = 1024},
                               {.storage = coded, .length = 512},
                               {.storage = coded, .length = 1024}});
  if (!shorter) return std::move(shorter).error();
  auto longer = tuner.trials({{.storage = f16, .length = 4096},
                              {.storage = f16, .length = 16384},
                              {.storage = coded, .length = 4096},
                              {.storage = coded, .length = 16384}});
  if (!longer) return std::move(longer).error();

  struct Step {
    const char* name;
    uint32_t T::*field;
    std::vector<uint32_t> values;
    const std::vector<Trial>& trials;
    FlashDecodeKernel kernel;
  };
  // Threadgroups for each core and simdgroups of each depend on one another, so the first is asked for again.
  std::vector<Step> steps = {{"threadgroupsPerCore", &T::threadgroupsPerCore, {1, 2, 4, 8, 16}, *longer, vector},
                             {"vectorSimdgroups", &T::vectorSimdgroups, {1, 2, 4, 8, 16}, *longer, vector},
                             {"threadgroupsPerCore", &T::threadgroupsPerCore, {1, 2, 4, 8, 16}, *longer, vector},
                             {"leastKeys", &T::leastKeys, {16, 32, 64, 128, 256, 512}, *shorter, vector},
                             {"reduceSimdgroups", &T::reduceSimdgroups, {1, 2, 4, 8}, *longer, vector}};
  const bool hasMatrices = static_cast<bool>(longer->front().problem.plans({.kernel = matrix}));
  if (hasMatrices) steps.push_back({"matrixSimdgroups", &T::matrixSimdgroups, {1, 2, 4, 8}, *longer, matrix});
  for (const Step& step : steps) {
    auto chosen = tuner.choose(step.name, step.field, step.values, step.trials, step.kernel);
    if (!chosen) return chosen;
  }
  if (hasMatrices) {
    for (const auto& [name, field, storage] :
         {std::tuple("denseMatrixRows", &T::denseMatrixRows, f16), {"codedMatrixRows", &T::codedMatrixRows, coded}}) {
      if (auto chosen = tuner.chooseMatrixRows(name, field, storage); !chosen) return chosen;
    }
  }
  printRow(tuner);
  return {};
}

}  // namespace mnk::bench::decode
