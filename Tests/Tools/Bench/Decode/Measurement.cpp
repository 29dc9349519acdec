#include <algorithm>
#include <cmath>

#include "Decode.hpp"
#include "PlainAttention.hpp"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

constexpr uint64_t kColdBytes = uint64_t{512} << 20;
constexpr uint32_t kMaxCopies = 64;
constexpr double kBudget = 0.25;  // seconds for the op's runs
constexpr uint32_t kMinRuns = 5;
constexpr uint32_t kMaxRuns = 51;
constexpr uint32_t kWarmUps = 2;
// Shorter runs share a submission, to exclude its cost and that of waking an idle GPU.
constexpr double kSubmissionSeconds = 1e-3;
constexpr uint32_t kMaxInSubmission = 32;

// Runs plans alternately.
class Turns {
 public:
  Turns(std::shared_ptr<Device> device, std::vector<Plan> plans)
      : device_(std::move(device)), plans_(std::move(plans)) {}

  // Creates pipelines, touches memory, and measures how many runs fill a submission.
  void warmUp() {
    for (uint32_t i = 0; i < kWarmUps; ++i) {
      const double taken = seconds();
      inSubmission_ = static_cast<uint32_t>(
          std::clamp(kSubmissionSeconds / std::max(taken, 1e-9), 1.0, static_cast<double>(kMaxInSubmission)));
    }
  }

  double seconds() {
    std::vector<Plan> turn;
    for (uint32_t i = 0; i < inSubmission_; ++i) turn.push_back(plans_[next_++ % plans_.size()]);
    return secondsOfAll(device_, turn) / inSubmission_;
  }

  uint32_t inSubmission() const { return inSubmission_; }

 private:
  std::shared_ptr<Device> device_;
  std::vector<Plan> plans_;
  uint32_t inSubmission_ = 1;
  size_t next_ = 0;
};

uint32_t copiesFor(uint64_t bytes, bool isCold) {
  if (!isCold) return 1;
  return static_cast<uint32_t>(std::clamp<uint64_t>((kColdBytes + bytes - 1) / bytes, 1, kMaxCopies));
}

double largestDifference(const Tensor& results, const std::vector<float>& expected) {
  const auto* halves = reinterpret_cast<const _Float16*>(results.buffer()->contents());
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(halves[i]) - static_cast<double>(expected[i]));
    if (!(difference <= largest)) largest = difference;  // keeps NaN
  }
  return largest;
}

}  // namespace

Measurement measure(const std::shared_ptr<Device>& device, const DecodeCase& shape, const DecodeOptions& options) {
  const uint64_t bytes = shape.bytes();
  const uint32_t copies = copiesFor(bytes, options.isCold);
  const DecodeProblem problem(device, shape, copies);
  auto plans = problem.plans(options.attention);
  const auto& dispatches = plans.at(0).dispatches;
  Measurement measured{.shape = shape, .kernel = dispatches.at(0).kernel.function, .dispatches = dispatches.size()};

  Turns op(device, std::move(plans));
  op.warmUp();
  struct Ceiling {
    Turns turns;
    std::optional<double>& seconds;
    std::vector<double> times = {};
  };
  std::vector<Ceiling> ceilings;
  try {
    ceilings.push_back({Turns(device, planReads(device, bytes, copies)), measured.readSeconds});
    if (shape.rows > FlashDecode::kRowsPerPass) {
      ceilings.push_back({Turns(device, {planMultiplies(device, shape.operations())}), measured.multiplySeconds});
    }
  } catch (const Error&) {  // the device cannot compile their kernels
  }
  for (Ceiling& ceiling : ceilings) ceiling.turns.warmUp();
  std::optional<PlainAttention> plain;
  if (device->kind() == "host" && PlainAttention::canRun(shape)) {
    plain.emplace(shape, copies, options.workers);
    for (uint32_t i = 0; i < kWarmUps; ++i) plain->seconds();
  }

  std::vector<double> times, plainTimes;
  for (double spent = 0; times.size() < kMinRuns || (spent < kBudget && times.size() < kMaxRuns);) {
    times.push_back(op.seconds());
    spent += times.back() * op.inSubmission();
    for (Ceiling& ceiling : ceilings) ceiling.times.push_back(ceiling.turns.seconds());
    if (plain) plainTimes.push_back(plain->seconds());
  }
  measured.runs = times.size() * op.inSubmission();
  measured.seconds = median(std::move(times));
  for (Ceiling& ceiling : ceilings) ceiling.seconds = median(std::move(ceiling.times));
  if (plain) {
    measured.plainSeconds = median(std::move(plainTimes));
    if (!shape.storage) {
      measured.difference = largestDifference(*problem.ops[0].results.output, plain->output());
    }
  }
  return measured;
}

}  // namespace mnk::bench
