#include "Measurement.hpp"

#include <algorithm>
#include <cmath>

#include "Bench/Timing.hpp"
#include "MultiplyCeiling.hpp"
#include "PlainAttention.hpp"
#include "ReadCeiling.hpp"

namespace mnk::bench::decode {

namespace {

constexpr uint64_t kColdBytes = uint64_t{512} << 20;
constexpr uint32_t kMaxCopies = 64;
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

Result<std::vector<double>> medianSeconds(const std::shared_ptr<Device>& device,
                                          const std::vector<std::optional<Plan>>& plans, double budget) {
  std::vector<Turns> turns;
  for (const auto& plan : plans) {
    turns.emplace_back(device, plan ? std::vector{*plan} : std::vector<Plan>());
    if (!plan) continue;
    if (auto warm = turns.back().warmUp(); !warm) return std::move(warm).error();
  }
  std::vector<std::vector<double>> times(plans.size());
  double spent = 0;
  for (uint32_t run = 0; run < kMinRuns || (run < kMaxRuns && spent < budget); ++run) {
    double longest = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
      if (!plans[i]) continue;
      auto seconds = turns[i].seconds();
      if (!seconds) return std::move(seconds).error();
      times[i].push_back(*seconds);
      longest = std::max(longest, *seconds * turns[i].inSubmission());
    }
    spent += longest;
  }
  std::vector<double> medians;
  for (size_t i = 0; i < plans.size(); ++i) medians.push_back(plans[i] ? median(std::move(times[i])) : INFINITY);
  return medians;
}

Result<Measurement> measure(const std::shared_ptr<Device>& device, const DecodeCase& shape,
                            const MeasuringOptions& options) {
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
  std::optional<Turns> reads;
  if (auto planned = planReads(device, *bytes, copies)) {
    reads.emplace(device, std::move(*planned));
    if (auto warm = reads->warmUp(); !warm) return std::move(warm).error();
  }
  std::optional<Turns> multiplies;
  if (shape.rows > FlashDecode::kRowsPerPass) {
    if (auto planned = planMultiplies(device, shape.operations())) {
      multiplies.emplace(device, std::vector{std::move(*planned)});
      if (auto warm = multiplies->warmUp(); !warm) return std::move(warm).error();
    }
  }
  std::optional<PlainAttention> plain;
  if (options.comparesPlain && PlainAttention::canRun(shape)) {
    plain.emplace(shape, copies);
    for (uint32_t i = 0; i < kWarmUps; ++i) plain->seconds();
  }

  std::vector<double> times, readTimes, multiplyTimes, plainTimes;
  for (double spent = 0; times.size() < kMinRuns || (spent < options.budget && times.size() < kMaxRuns);) {
    auto seconds = op.seconds();
    if (!seconds) return std::move(seconds).error();
    times.push_back(*seconds);
    spent += *seconds * op.inSubmission();
    if (reads) {
      auto reading = reads->seconds();
      if (!reading) return std::move(reading).error();
      readTimes.push_back(*reading);
    }
    if (multiplies) {
      auto multiplying = multiplies->seconds();
      if (!multiplying) return std::move(multiplying).error();
      multiplyTimes.push_back(*multiplying);
    }
    if (plain) plainTimes.push_back(plain->seconds());
  }
  measured.runs = times.size() * op.inSubmission();
  measured.seconds = median(std::move(times));
  if (reads) measured.readSeconds = median(std::move(readTimes));
  if (multiplies) measured.multiplySeconds = median(std::move(multiplyTimes));
  if (plain) {
    measured.plainSeconds = median(std::move(plainTimes));
    if (!shape.storage.codec) {
      measured.difference = largestDifference(*problem->ops[0].results.into, plain->output());
    }
  }
  return measured;
}

}  // namespace mnk::bench::decode
