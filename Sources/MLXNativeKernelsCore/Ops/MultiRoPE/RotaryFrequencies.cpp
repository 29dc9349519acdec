#include "Ops/MultiRoPE/RotaryFrequencies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mnk {

namespace {

// YaRN's ramp: pairs below `low` keep their frequency and pairs above `high` are interpolated, according to their
// number of rotations in the original context.
struct Ramp {
  double low = 0;
  double high = 0;

  Ramp(const RotaryEmbedding::YaRN& yarn, double base, double dims) {
    const double context = static_cast<double>(yarn.originalContext);
    const auto pairWithTurns = [&](double turns) {
      return dims * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    const double fast = pairWithTurns(yarn.betaFast), slow = pairWithTurns(yarn.betaSlow);
    low = std::max(0.0, yarn.roundsCorners ? std::floor(fast) : fast);
    high = std::min(dims - 1, yarn.roundsCorners ? std::ceil(slow) : slow);
  }

  // 1 for pairs that are kept, 0 for those that are scaled.
  double kept(double pair) const { return 1 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0); }
};

// The powers of the base, restarting after `firstSection` pairs. Repeated multiplication is cheaper than pow and
// accurate enough: the relative error of pair p is at most about p * 2^-52, and with a base above 1 the frequency
// itself decreases faster than this error grows.
std::vector<double> ladder(uint64_t pairs, double base, double dims, uint64_t firstSection) {
  std::vector<double> steps(pairs);
  const double ratio = std::pow(base, -2 / dims);
  double frequency = 1;
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    if (pair == firstSection) frequency = 1;
    steps[pair] = frequency;
    frequency *= ratio;
  }
  return steps;
}

}  // namespace

bool hasSections(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::mrope || layout == RotaryEmbedding::Layout::imrope ||
         layout == RotaryEmbedding::Layout::vision;
}

uint64_t ropeDimOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  return rotary.ropeDim == 0 ? headDim : rotary.ropeDim;
}

uint64_t pairsOfRound(const RotaryEmbedding& rotary) {
  const size_t sections = rotary.layout == RotaryEmbedding::Layout::vision ? 2 : rotary.sections.size();
  uint64_t sum = 0;
  for (size_t i = 0; i < sections; ++i) sum += rotary.sections[i];
  return sum;
}

uint32_t axisOf(const RotaryEmbedding& rotary, uint64_t pair) {
  if (!hasSections(rotary.layout)) return 0;
  const auto& sections = rotary.sections;
  const uint64_t place = pair % pairsOfRound(rotary);
  if (rotary.layout == RotaryEmbedding::Layout::imrope) {
    const auto axis = static_cast<uint32_t>(place % 3);
    if (place < 3 * uint64_t{sections[axis]}) return axis;
    return rotary.otherAxis == RotaryEmbedding::OtherAxis::axis0 ? 0 : 3;
  }
  uint64_t end = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    end += sections[axis];
    if (place < end) return axis;
  }
  return 3;
}

std::vector<double> frequenciesOf(const RotaryEmbedding& rotary, uint64_t headDim) {
  const uint64_t ropeDim = ropeDimOf(rotary, headDim);
  const bool isVision = rotary.layout == RotaryEmbedding::Layout::vision;
  const auto dims = static_cast<double>(isVision ? headDim / 2 : ropeDim);
  auto frequencies = ladder(ropeDim / 2, rotary.base, dims, isVision ? rotary.sections[0] : UINT64_MAX);
  for (size_t pair = 0; pair < rotary.frequencyFactors.size() && pair < frequencies.size(); ++pair) {
    const float factor = rotary.frequencyFactors[pair];
    frequencies[pair] = std::isinf(factor) ? 0 : frequencies[pair] / factor;
  }
  if (!rotary.yarn || rotary.yarn->extensionFactor == 0) {
    for (double& frequency : frequencies) frequency *= rotary.scale;
    return frequencies;
  }
  const Ramp ramp(*rotary.yarn, rotary.base, dims);
  for (size_t pair = 0; pair < frequencies.size(); ++pair) {
    const double kept = ramp.kept(static_cast<double>(pair)) * rotary.yarn->extensionFactor;
    frequencies[pair] *= rotary.scale * (1 - kept) + kept;
  }
  return frequencies;
}

double magnitudeOf(const RotaryEmbedding& rotary) {
  if (!rotary.yarn) return 1;
  const RotaryEmbedding::YaRN& yarn = *rotary.yarn;
  // -log(scale) instead of log(1 / scale), which can overflow.
  const double growth = yarn.extensionFactor == 0 ? 1 : 1 - 0.1 * std::log(rotary.scale);
  return yarn.attentionFactor * growth;
}

}  // namespace mnk
