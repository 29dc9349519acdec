#include "Measurement.hpp"

#include <algorithm>
#include <cmath>

#include "Ceilings.hpp"
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
  Result<void> warmUp() {
    for (uint32_t i = 0; i < kWarmUps; ++i) {
      auto taken = seconds();
      if (!taken) return std::move(taken).error();
      inSubmission_ = static_cast<uint32_t>(
          std::clamp(kSubmissionSeconds / std::max(*taken, 1e-9), 1.0, static_cast<double>(kMaxInSubmission)));
    }
    return {};
  }

  Result<double> seconds() {
    std::vector<Plan> turn;
    for (uint32_t i = 0; i < inSubmission_; ++i) turn.push_back(plans_[next_++ % plans_.size()]);
    auto all = secondsOfAll(device_, turn);
    if (!all) return std::move(all).error();
    return *all / inSubmission_;
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

Result<Measurement> measure(const std::shared_ptr<Device>& device, const DecodeCase& shape,
                            const DecodeOptions& options) {
  auto bytes = shape.bytes();
  if (!bytes) return std::move(bytes).error();
  const uint32_t copies = copiesFor(*bytes, options.isCold);
  auto problem = DecodeProblem::make(device, shape, copies);
  if (!problem) return std::move(problem).error();
  auto plans = problem->plans(options.attention);
  if (!plans) return std::move(plans).error();
  Measurement measured{.shape = shape, .work = ChosenWork::of(plans->at(0)), .bytes = *bytes};

  Turns op(device, std::move(*plans));
  if (auto warm = op.warmUp(); !warm) return std::move(warm).error();
  struct Ceiling {
    Turns turns;
    std::optional<double>& seconds;
    std::vector<double> times = {};
  };
  std::vector<Ceiling> ceilings;
  if (auto planned = planReads(device, *bytes, copies)) {
    ceilings.push_back({Turns(device, std::move(*planned)), measured.readSeconds});
  }
  if (shape.rows > FlashDecode::kRowsPerPass) {
    if (auto planned = planMultiplies(device, shape.operations())) {
      ceilings.push_back({Turns(device, {std::move(*planned)}), measured.multiplySeconds});
    }
  }
  for (Ceiling& ceiling : ceilings) {
    if (auto warm = ceiling.turns.warmUp(); !warm) return std::move(warm).error();
  }
  std::optional<PlainAttention> plain;
  if (device->kind() == "host" && PlainAttention::canRun(shape)) {
    plain.emplace(shape, copies, options.workers);
    for (uint32_t i = 0; i < kWarmUps; ++i) plain->seconds();
  }

  std::vector<double> times, plainTimes;
  for (double spent = 0; times.size() < kMinRuns || (spent < kBudget && times.size() < kMaxRuns);) {
    auto seconds = op.seconds();
    if (!seconds) return std::move(seconds).error();
    times.push_back(*seconds);
    spent += *seconds * op.inSubmission();
    for (Ceiling& ceiling : ceilings) {
      auto least = ceiling.turns.seconds();
      if (!least) return std::move(least).error();
      ceiling.times.push_back(*least);
    }
    if (plain) plainTimes.push_back(plain->seconds());
  }
  measured.runs = times.size() * op.inSubmission();
  measured.seconds = median(std::move(times));
  for (Ceiling& ceiling : ceilings) ceiling.seconds = median(std::move(ceiling.times));
  if (plain) {
    measured.plainSeconds = median(std::move(plainTimes));
    if (!shape.storage.codec) {
      measured.difference = largestDifference(*problem->ops[0].results.output, plain->output());
    }
  }
  return measured;
}

}  // namespace mnk::bench
