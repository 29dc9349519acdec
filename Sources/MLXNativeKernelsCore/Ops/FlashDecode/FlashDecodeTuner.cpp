#include "Tuning/FlashDecodeTuner.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/FlashDecodeLayout.hpp"

namespace mnk {

namespace {

constexpr double kLeastSeconds = 2e-4;  // of a submission, whose own time is then shared by its calls
constexpr uint64_t kMostCalls = 64;     // in one submission
constexpr int kRuns = 3;                // of which the fastest counts: whatever disturbs a run only makes it slower
constexpr double kHopeless = 1.5;       // times the fastest: a slower first run is the last
constexpr double kWorthAChange = 0.98;  // nearer than that, times of one choice differ from run to run

// A search along one property at a time, because their product is some hundred candidates.
class Search {
 public:
  Search(std::shared_ptr<Device> device, std::span<const FlashDecode> ops, double budget)
      : device_(std::move(device)), ops_(ops), left_(budget) {}

  Result<MeasuredFlashDecode> run() {
    auto layout = layoutOn(*device_, ops_[0]);
    if (!layout) return std::move(layout).error();
    const FlashDecodeChoice planned = layout->choice();
    found_ = {.workload = FlashDecodeWorkload::of(ops_[0]), .planned = planned, .fastest = planned};
    auto roughly = secondsOf(planned);
    if (!roughly) return std::move(roughly).error();
    calls_ = static_cast<uint64_t>(std::clamp(kLeastSeconds / *roughly, 1.0, double{kMostCalls}));
    auto first = secondsOf(planned);
    if (!first) return std::move(first).error();
    found_.plannedSeconds = found_.fastestSeconds = *first;
    tried_.push_back(planned);
    const uint64_t threadgroups = layout->threadgroups(ops_[0]);
    const auto steps = {&Search::tryKernels, &Search::trySplits, &Search::trySimdgroups,
                        &Search::tryMerges,  &Search::trySplits, &Search::tryKernels};
    for (const auto step : steps) {
      if (auto tried = (this->*step)(threadgroups); !tried) return std::move(tried).error();
    }
    found_.candidates = tried_.size();
    return found_;
  }

 private:
  Result<void> tryKernels(uint64_t) {
    FlashDecodeChoice choice = found_.fastest;
    choice.usesMatrices = false;
    choice.rowsTogether = choice.tileKeys = 0;
    if (auto tried = consider(choice); !tried) return tried;
    for (const MatrixInstance& instance : matrixInstances()) {
      // Rows beyond those that there are would be computed for nothing.
      const bool hasSpareRows = instance.rows > 8 && instance.rows > found_.workload.rows;
      if (instance.headDim != found_.workload.keyDim || hasSpareRows) continue;
      choice.usesMatrices = true;
      choice.rowsTogether = instance.rows;
      choice.tileKeys = instance.keys;
      if (auto tried = consider(choice); !tried) return tried;
    }
    return {};
  }

  // As many threadgroups as the device has cores, some times more or fewer, and neighbors of the best number yet.
  Result<void> trySplits(uint64_t threadgroups) {
    const uint64_t cores = std::max<uint64_t>(device_->profile().cores, 1);
    const uint64_t best = found_.fastest.splits;
    std::vector<uint64_t> all = {best / 2, best * 2, best * 4, 1};
    for (const uint64_t perCore : {1, 2, 4}) all.push_back(cores * perCore / threadgroups);
    for (const uint64_t splits : all) {
      FlashDecodeChoice choice = found_.fastest;
      choice.splits = static_cast<uint32_t>(std::clamp<uint64_t>(splits, 1, FlashDecode::kMaxSplits));
      if (auto tried = consider(choice); !tried) return tried;
    }
    return {};
  }

  Result<void> trySimdgroups(uint64_t) {
    for (const uint32_t simdgroups : {1, 2, 4, 8, 16}) {
      FlashDecodeChoice choice = found_.fastest;
      choice.simdgroups = simdgroups;
      if (auto tried = consider(choice); !tried) return tried;
    }
    return {};
  }

  Result<void> tryMerges(uint64_t) {
    FlashDecodeChoice choice = found_.fastest;
    choice.mergesTogether = !choice.mergesTogether;
    return consider(choice);
  }

  Result<void> consider(const FlashDecodeChoice& asked) {
    if (left_ <= 0) return {};
    // As it would run: splits that are not empty, simdgroups that fit.
    auto layout = layoutOn(*device_, ops_[0], asked);
    if (!layout) return std::move(layout).error();
    const FlashDecodeChoice choice = layout->choice();
    if (std::find(tried_.begin(), tried_.end(), choice) != tried_.end()) return {};
    tried_.push_back(choice);
    auto seconds = secondsOf(choice);
    if (!seconds) return std::move(seconds).error();
    if (*seconds >= found_.fastestSeconds * kWorthAChange) return {};
    found_.fastest = choice;
    found_.fastestSeconds = *seconds;
    return {};
  }

  Result<double> secondsOf(const FlashDecodeChoice& choice) {
    std::vector<Plan> plans;
    for (const FlashDecode& op : ops_) {
      auto planned = planAs(op, *device_, choice);
      if (!planned) return std::move(planned).error();
      plans.push_back(std::move(*planned));
    }
    double least = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      auto summary = CommandEncoder::run(
          device_,
          [&](CommandEncoder& encoder) -> Result<void> {
            for (uint64_t call = 0; call < calls_; ++call) {
              if (auto encoded = encoder.encode(plans[next_++ % plans.size()]); !encoded) return encoded;
            }
            return {};
          },
          "tuning");
      if (!summary) return std::move(summary).error();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      const double onDevice = summary->deviceSeconds > 0 ? summary->deviceSeconds : passed.count();
      left_ -= onDevice;
      const double each = onDevice / static_cast<double>(calls_);
      least = run == 0 ? each : std::min(least, each);
      if (found_.fastestSeconds != 0 && each > kHopeless * found_.fastestSeconds) break;
    }
    return least;
  }

  std::shared_ptr<Device> device_;
  std::span<const FlashDecode> ops_;
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
