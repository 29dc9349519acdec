#include "Ops/FlashDecode/FlashDecodeTuning.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Runtime/DispatchRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr double kMinSeconds = 2e-4;  // of a submission, to amortize its overhead over its calls
constexpr uint64_t kMaxCalls = 64;    // in one submission
constexpr int kRuns = 3;              // the minimum counts, because noise only makes a run slower
// A candidate whose first run is slower than this factor times the fastest is dropped.
constexpr double kGiveUpFactor = 1.5;
constexpr double kMinGain = 0.98;  // smaller gains are within run-to-run noise

// A coordinate search, one property at a time, because the full product has some hundreds of candidates.
class Search {
 public:
  Search(std::shared_ptr<Device> device, std::span<const FlashDecode> ops, double budget)
      : device_(std::move(device)), profile_(device_->probe()), ops_(ops), shape_(ops[0]), left_(budget) {}

  Result<MeasuredFlashDecode> run() {
    MNK_TRY(auto layout, layoutFor(shape_, profile_));
    MNK_TRY(auto planned, effectiveChoice(layout));
    found_ = {.workload = workloadOf(shape_, profile_), .planned = planned, .fastest = planned};
    MNK_TRY(auto roughly, secondsOf(planned));
    calls_ = static_cast<uint64_t>(std::clamp(kMinSeconds / roughly, 1.0, double{kMaxCalls}));
    MNK_TRY(auto first, secondsOf(planned));
    found_.plannedSeconds = found_.fastestSeconds = first;
    tried_.push_back(planned);
    const uint64_t threadgroups = layout.threadgroups();
    const auto steps = {&Search::tryKernels, &Search::trySplits, &Search::trySimdgroups,
                        &Search::tryMerges,  &Search::trySplits, &Search::tryKernels};
    for (const auto step : steps) MNK_TRY((this->*step)(threadgroups));
    found_.candidates = tried_.size();
    return found_;
  }

 private:
  Result<void> tryKernels(uint64_t) {
    FlashDecodeChoice choice = found_.fastest;
    choice.usesMatrices = choice.usesPrefill = false;
    choice.rowsPerTile = choice.tileKeys = 0;
    if (!found_.workload.isPrompt) MNK_TRY(consider(choice));
    if (found_.workload.isPrompt || shape_.isLatent()) {
      choice.usesPrefill = true;
      for (const uint32_t blocks : {1, 2}) {
        choice.rowsPerTile = 8 * blocks;
        MNK_TRY(consider(choice));
      }
      choice.usesPrefill = false;
    }
    if (found_.workload.isPrompt) return {};
    const uint32_t headDim = matrixDim(found_.workload.keyDim, shape_.quantized != nullptr);
    for (const MatrixInstance& instance : matrixInstances()) {
      // Skips instances that would compute mostly padding rows.
      const bool hasSpareRows = instance.rows > 8 && instance.rows > found_.workload.rows;
      if (instance.headDim != headDim || hasSpareRows) continue;
      choice.usesMatrices = true;
      choice.rowsPerTile = instance.rows;
      choice.tileKeys = instance.keys;
      MNK_TRY(consider(choice));
    }
    return {};
  }

  // Splits for one to sixteen threadgroups per core, and multiples of the best number so far.
  Result<void> trySplits(uint64_t threadgroups) {
    const uint64_t cores = std::max<uint64_t>(profile_.cores, 1);
    const uint64_t best = found_.fastest.splits;
    std::vector<uint64_t> all = {best / 2, best * 2, best * 4, 1};
    for (const uint64_t perCore : {1, 2, 4, 8, 16}) all.push_back(cores * perCore / threadgroups);
    for (const uint64_t splits : all) {
      FlashDecodeChoice choice = found_.fastest;
      choice.splits = static_cast<uint32_t>(std::clamp<uint64_t>(splits, 1, FlashDecode::kMaxSplits));
      MNK_TRY(consider(choice));
    }
    return {};
  }

  Result<void> trySimdgroups(uint64_t) {
    for (const uint32_t simdgroups : {1, 2, 4, 8, 12, 16}) {
      FlashDecodeChoice choice = found_.fastest;
      choice.simdgroups = simdgroups;
      MNK_TRY(consider(choice));
    }
    return {};
  }

  Result<void> tryMerges(uint64_t) {
    FlashDecodeChoice choice = found_.fastest;
    choice.mergesInKernel = !choice.mergesInKernel;
    return consider(choice);
  }

  Result<void> consider(const FlashDecodeChoice& asked) {
    if (left_ <= 0) return {};
    MNK_TRY(auto layout, layoutFor(shape_, profile_, asked));
    MNK_TRY(auto choice, effectiveChoice(layout));
    if (std::find(tried_.begin(), tried_.end(), choice) != tried_.end()) return {};
    tried_.push_back(choice);
    MNK_TRY(auto seconds, secondsOf(choice));
    if (seconds >= found_.fastestSeconds * kMinGain) return {};
    found_.fastest = choice;
    found_.fastestSeconds = seconds;
    return {};
  }

  // The choice as it will run: without empty splits, and with as many simdgroups as threadgroup memory and the pipeline
  // allow.
  Result<FlashDecodeChoice> effectiveChoice(const FlashDecodeLayout& layout) const {
    FlashDecodeChoice choice = layout.choice();
    MNK_TRY(const auto planned, planAs(ops_[0], profile_, choice));
    const Dispatch& first = planned.dispatches.front();
    auto pipeline = device_->registry().pipeline(first.kernel);
    if (!pipeline) return std::move(pipeline).error();
    const uint32_t fewest = first.grid.minThreads;  // of which the prefill kernel has multiples
    const uint32_t most = std::max((*pipeline)->maxThreadsPerThreadgroup(), fewest);
    choice.simdgroups = shrinkToLimit(most, first.grid.threadgroup)[0] / fewest * fewest / 32;
    return choice;
  }

  Result<double> secondsOf(const FlashDecodeChoice& choice) {
    std::vector<Plan> plans;
    for (const FlashDecode& op : ops_) {
      MNK_TRY(auto planned, planAs(op, profile_, choice));
      for (Dispatch& dispatch : planned.dispatches) dispatch.mayReadUndefined = true;  // a new cache
      plans.push_back(std::move(planned));
    }
    const auto encodeCalls = [&](CommandEncoder& encoder) -> Result<void> {
      for (uint64_t call = 0; call < calls_; ++call) MNK_TRY(encoder.encode(plans[next_++ % plans.size()]));
      return {};
    };
    double least = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      MNK_TRY(auto summary, CommandEncoder::run(device_, encodeCalls, "tuning"));
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      const double onDevice = summary.deviceSeconds > 0 ? summary.deviceSeconds : passed.count();
      left_ -= onDevice;
      const double each = onDevice / static_cast<double>(calls_);
      least = run == 0 ? each : std::min(least, each);
      if (found_.fastestSeconds != 0 && each > kGiveUpFactor * found_.fastestSeconds) break;
    }
    return least;
  }

  std::shared_ptr<Device> device_;
  DeviceProfile profile_;
  std::span<const FlashDecode> ops_;
  AttentionShape shape_;  // of the first op
  double left_;
  uint64_t calls_ = 1;  // in a submission
  uint64_t next_ = 0;   // op
  MeasuredFlashDecode found_;
  std::vector<FlashDecodeChoice> tried_;
};

}  // namespace

Result<MeasuredFlashDecode> measureFlashDecode(const std::shared_ptr<Device>& device, std::span<const FlashDecode> ops,
                                               double budget) {
  return Search(device, ops, budget).run();
}

}  // namespace mnk
