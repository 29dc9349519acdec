#include "MLXNativeKernels/Prepare.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <set>

#include "Cache/AttentionCacheState.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeTuning.hpp"
#include "Prepare/TuningFile.hpp"
#include "Runtime/WorkInFlight.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr double kBudget = 0.03;        // seconds of device time for a workload
constexpr size_t kMaxCaches = 8;        // measured for one workload
constexpr uint64_t kMinMeasured = 256;  // keys; with fewer, the choice matters little
constexpr uint64_t kMaxGroup = FlashDecode::kMaxGroup;
constexpr uint64_t kManyElements = 1 << 18;
constexpr uint64_t kMeasuredDistance = 4;  // a choice covers from half to twice its keys

}  // namespace

class Preparing {
 public:
  Preparing(std::shared_ptr<Device> device, const Preparation& what) : device_(std::move(device)), what_(what) {}

  Result<PreparationSummary> run() {
    MNK_TRY(check());
    const std::lock_guard lock(device_->preparing_);
    const auto begin = std::chrono::steady_clock::now();
    device_->probe();
    if (what_.tuning == Tuning::measure) MNK_TRY(measure());
    for (const AttentionCache& cache : what_.caches) MNK_TRY(compile(cache));
    summary_.kernels = kernels_.size();
    summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return summary_;
  }

 private:
  Result<void> check() const {
    if (isInFinishedHandler()) {
      Error error = waitInHandler(kPrepareName);
      error.fix = "Call prepare on another thread.";
      return error;
    }
    if (what_.tuning != Tuning::table && what_.tuning != Tuning::measure) {
      return invalidArgument(kPrepareName, "there is no such tuning",
                             fmt::format("{}", static_cast<uint32_t>(what_.tuning)), "table or measure",
                             "Pass one of the cases of Tuning.");
    }
    if (what_.dtype != DType::f32 && what_.dtype != DType::f16 && what_.dtype != DType::bf16) {
      return invalidArgument(kPrepareName, "there are no kernels for tokens of this dtype", name(what_.dtype),
                             "f32, f16 or bf16", "Pass the dtype of queries and keys.");
    }
    for (const AttentionCache& cache : what_.caches) {
      const AttentionCacheDescriptor& d = cache.descriptor();
      if (cache.view().keys.buffer()->device() != device_) {
        return invalidArgument(kPrepareName, "a cache is of another device", cache.text(),
                               fmt::format("a cache of {}", device_->name()),
                               "Prepare each device with its own caches.");
      }
      if (!d.isStorageOnly && (what_.queryHeads % d.kvHeads != 0 || what_.queryHeads / d.kvHeads > kMaxGroup)) {
        return invalidArgument(kPrepareName, "the heads of queries do not fit a cache",
                               countText(what_.queryHeads, "head"),
                               fmt::format("a multiple of the cache's {}, at most {} times", d.kvHeads, kMaxGroup),
                               "Pass the heads of queries of the model.");
      }
      if (what_.rows >= 1 && what_.rows <= d.capacity) continue;
      return invalidArgument(kPrepareName, "the rows do not fit a cache", countText(what_.rows, "row"),
                             fmt::format("1 to {}, the slots of the smallest cache", d.capacity),
                             "Pass the most tokens that a step appends to a sequence.");
    }
    return {};
  }

  static const AttentionCache::State& stateOf(const AttentionCache& cache) { return *cache.state_; }

  uint64_t queryHeads(const AttentionCache& cache) const {
    return what_.queryHeads != 0 ? what_.queryHeads : cache.descriptor().kvHeads;
  }

  // Memory that plans name; the operands of one plan do not overlap.
  enum class Operand : uint8_t { queries, keys, values, results };
  Result<Tensor> memory(Operand operand, const std::vector<uint64_t>& extents) {
    const auto found = memory_.find({operand, extents});
    if (found != memory_.end()) return found->second;
    MNK_TRY(auto shape, Shape::make(extents));
    auto result = Tensor::zeros(device_, what_.dtype, shape);
    if (result) memory_.emplace(std::pair(operand, extents), *result);
    return result;
  }

  // The row counts of possible steps: one pass over the cache handles up to eight rows.
  std::set<uint64_t> rowCounts() const {
    if (what_.options.mask) return {what_.rows};  // a mask may fit no other count
    std::set<uint64_t> counts{1, std::min<uint64_t>(what_.rows, FlashDecode::kRowsPerPass)};
    if (what_.rows % FlashDecode::kRowsPerPass != 0) counts.insert(what_.rows % FlashDecode::kRowsPerPass);
    return counts;
  }
  // With prompts, of one sequence: many rows of several would take much memory.
  std::set<uint64_t> measuredRows(uint64_t sequences) const {
    std::set<uint64_t> counts = rowCounts();
    if (sequences == 1) counts.insert(what_.rows);
    return counts;
  }
  std::set<uint64_t> sequenceCounts(const AttentionCache& cache) const {
    const uint64_t all = cache.descriptor().sequences;
    const bool hasSequences = what_.options.mask && what_.options.mask->shape().rank() > 3;
    return hasSequences ? std::set<uint64_t>{all} : std::set<uint64_t>{1, all};
  }

  // If ragged, the first sequence has all rows and the others have one.
  Result<FlashDecode> attention(const AttentionCache& cache, uint64_t sequences, uint64_t rows, uint64_t length,
                                bool isRagged = false) {
    const AttentionCacheDescriptor& d = cache.descriptor();
    const uint64_t queryDim = uint64_t{d.latentDim} + d.headDim;
    const uint64_t axes[] = {isRagged ? 1 : sequences, isRagged ? rows + sequences - 1 : rows};
    MNK_TRY(auto queries, memory(Operand::queries, {axes[0], axes[1], queryHeads(cache), queryDim}));
    MNK_TRY(auto results, memory(Operand::results, {axes[0], axes[1], queryHeads(cache), d.valueHeadDim}));
    std::vector<AttendedSequence> attended;
    for (uint64_t sequence = 0; sequence < sequences; ++sequence) {
      attended.push_back({.sequence = sequence, .length = length});
      if (isRagged) attended.back().rows = sequence == 0 ? rows : 1;
    }
    return stateOf(cache).attention(queries, {.output = results}, what_.options, std::move(attended));
  }

  Result<void> measure() {
    const TuningFile file = TuningFile::of(*device_, what_.tuningFile);
    MNK_TRY(file.checkReplaceable());
    const auto known = device_->profile().measuredTuning;
    const std::optional<MeasuredTuning> kept = file.load();
    MeasuredTuning tuning = known ? *known : MeasuredTuning();
    if (kept) tuning.add(*kept);
    std::map<FlashDecodeWorkload, std::vector<FlashDecode>> workloads;
    for (const AttentionCache& cache : what_.caches) {
      if (cache.descriptor().isStorageOnly) continue;
      for (const uint64_t sequences : sequenceCounts(cache)) {
        for (const uint64_t rows : measuredRows(sequences)) {
          const uint64_t least = std::max(rows, kMinMeasured);
          for (uint64_t length = cache.descriptor().capacity; length >= least; length /= kMeasuredDistance) {
            MNK_TRY(auto op, attention(cache, sequences, rows, length));
            MNK_TRY(const auto shape, AttentionShape::of(op));
            const FlashDecodeWorkload workload = workloadOf(shape, device_->probe());
            if (rows > FlashDecode::kRowsPerPass && !workload.isPrompt) continue;  // several passes, measured as such
            auto& ops = workloads[workload];
            if (ops.size() < kMaxCaches) ops.push_back(std::move(op));
          }
        }
      }
    }
    for (const auto& [workload, ops] : workloads) {
      if (tuning.find(workload)) {
        ++summary_.known;
        continue;
      }
      MNK_TRY(auto measured, measureFlashDecode(device_, ops, kBudget));
      tuning.set(workload, measured.fastest);
      ++summary_.measured;
    }
    if (kept != std::optional(tuning) && tuning.size() != 0) {
      if (const auto others = file.load()) tuning.add(*others);  // measured by another process meanwhile
      if (auto saved = file.save(tuning); !saved) summary_.notKept = std::move(saved).error();
    }
    if (!summary_.notKept && tuning.size() != 0) summary_.tuningFile = file.path();
    device_->useMeasuredTuning(std::make_shared<const MeasuredTuning>(std::move(tuning)));
    return {};
  }

  Result<void> compile(const AttentionCache& cache) {
    const AttentionCacheDescriptor& d = cache.descriptor();
    const CacheStorage& storage = stateOf(cache).storage;
    // Beyond this many elements, the choice of kernel no longer changes.
    const uint64_t many = kManyElements / (uint64_t{d.kvHeads} * std::min(d.headDim, d.valueHeadDim)) + 1;
    const uint64_t mostRows = std::min<uint64_t>(what_.rows, many);
    for (const uint64_t tokens : std::set<uint64_t>{1, mostRows, d.sequences}) {
      MNK_TRY(auto keys, memory(Operand::keys, {tokens, d.kvHeads, d.headDim}));
      MNK_TRY(auto values, memory(Operand::values, {tokens, d.kvHeads, d.valueHeadDim}));
      std::vector<uint32_t> sequences(tokens), slots(tokens, 0);
      std::iota(sequences.begin(), sequences.end(), 0u);
      const auto toOne = storage.append(keys, values);
      const auto toEach = storage.appendRows(keys, values, sequences, slots);
      if (tokens <= mostRows) MNK_TRY(compile(planAppends({&toOne, 1})));
      if (tokens == d.sequences) MNK_TRY(compile(planAppends(toEach)));
      if (what_.rotary && !d.isStorageOnly) {
        MNK_TRY(auto queries, memory(Operand::queries, {tokens, queryHeads(cache), d.headDim}));
        MultiRoPE op{.queries = queries, .keys = HeadsView(keys), .rotary = *what_.rotary};
        MNK_TRY(compile(plan(op)));
        if (d.latentDim != 0) continue;
        // The same, fused with the append.
        if (tokens <= mostRows) MNK_TRY(compile(planAppends({&toOne, 1}, op)));
        op.positions = RotaryPositions(std::vector<int32_t>(tokens));
        if (tokens == d.sequences) MNK_TRY(compile(planAppends(toEach, op)));
      }
    }
    if (d.isStorageOnly) return {};
    std::set<uint64_t> counts = rowCounts();
    counts.insert(what_.rows);  // in one dispatch, if there is a kernel for it
    for (const uint64_t sequences : sequenceCounts(cache)) {
      for (const uint64_t rows : counts) {
        // The number of splits, and so the kernel, depends on the length.
        for (uint64_t length = d.capacity; length >= rows; length /= 2) {
          // Many rows of several sequences would take much memory. They need no splits, and take the kernels of one.
          const bool areMany = sequences > 1 && rows > FlashDecode::kRowsPerPass && !what_.options.mask;
          MNK_TRY(auto op, attention(cache, areMany ? 1 : sequences, rows, length));
          if (areMany && op.options.splits == 0) op.options.splits = 1;
          MNK_TRY(compile(plan(op, device_->profile())));
          if (sequences == 1 || rows == 1 || what_.options.mask) continue;
          MNK_TRY(auto ragged, attention(cache, sequences, rows, length, true));
          MNK_TRY(compile(plan(ragged, device_->profile())));
        }
      }
    }
    return {};
  }

  Result<void> compile(const Result<Plan>& planned) {
    if (!planned) return planned.error();
    for (const Dispatch& dispatch : planned->dispatches) {
      MNK_TRY(auto pipeline, device_->registry().pipeline(dispatch.kernel));
      kernels_.insert(pipeline.get());
    }
    return {};
  }

  std::shared_ptr<Device> device_;
  const Preparation& what_;
  PreparationSummary summary_;
  std::map<std::pair<Operand, std::vector<uint64_t>>, Tensor> memory_;
  std::set<const Pipeline*> kernels_;
};

std::string PreparationSummary::text() const {
  return fmt::format("{}, {} measured, {} known, {:.1f} s", countText(kernels, "kernel"), countText(measured, "shape"),
                     known, seconds);
}

Result<PreparationSummary> prepare(const std::shared_ptr<Device>& device, const Preparation& preparation) {
  return guardedAs(kPrepareName, [&]() -> Result<PreparationSummary> {
    if (!device) {
      return invalidArgument(kPrepareName, "there is no device", "a null pointer", "a device",
                             "Pass the device that the caches were made on.");
    }
    return Preparing(device, preparation).run();
  });
}

}  // namespace mnk
