#include <algorithm>
#include <cmath>
#include <limits>

#include "MultiRoPECall.hpp"
#include "Ops/MultiRoPE/MultiRoPEReference.hpp"

namespace mnk::fuzz {

namespace {

using Spec = MultiRoPESpec;

constexpr uint64_t kMostElements = 1024;
constexpr long double kMostRadians = 65536;

uint64_t ropeDimOf(const mnk_rotary_embedding& rotary, uint64_t headDim) {
  return rotary.has_rope_dim ? rotary.rope_dim : headDim;
}

bool hasSections(const mnk_rotary_embedding& rotary) {
  return rotary.layout == MNK_MROPE || rotary.layout == MNK_IMROPE || rotary.layout == MNK_VISION;
}

uint64_t roundOf(const mnk_rotary_embedding& rotary) {
  const uint64_t two = uint64_t{rotary.sections[0]} + rotary.sections[1];
  return rotary.layout == MNK_VISION ? two : two + rotary.sections[2] + rotary.sections[3];
}

bool isFinite(long double number) {
  return number - number == 0;
}

std::string refusalOfSections(const mnk_rotary_embedding& rotary, uint64_t ropeDim, uint64_t headDim) {
  const bool hasNone = std::all_of(rotary.sections, rotary.sections + 4, [](uint32_t pairs) { return pairs == 0; });
  if (!hasSections(rotary)) return hasNone ? "" : "sections are given to a layout without sections";
  if (roundOf(rotary) == 0) return "the sections are empty";
  if (rotary.layout != MNK_VISION) return {};
  if (ropeDim != headDim) return "vision rotates whole heads";
  return 2 * roundOf(rotary) == headDim ? "" : "the sections of vision do not cover the head";
}

// Without an extension there is no blend, and nothing but the attention factor is read.
bool blends(const mnk_rotary_embedding& rotary) {
  return rotary.has_yarn && rotary.yarn.extension_factor != 0;
}

std::string refusalOfYaRN(const mnk_rotary_embedding& rotary) {
  if (!rotary.has_yarn) return {};
  if (blends(rotary) && rotary.layout == MNK_VISION) return "YaRN has no meaning for vision";
  const mnk_yarn& yarn = rotary.yarn;
  std::vector<float> positive{yarn.attention_factor};
  if (blends(rotary)) positive.insert(positive.end(), {yarn.beta_fast, yarn.beta_slow});
  bool isSound = isFinite(yarn.extension_factor) && (!blends(rotary) || yarn.original_context != 0);
  for (const float number : positive) isSound = isSound && number > 0 && isFinite(number);
  if (!isSound) return "a number of YaRN is out of range";
  return !blends(rotary) || rotary.base > 1 ? "" : "YaRN needs a base above 1";
}

long double growthOf(const mnk_rotary_embedding& rotary) {
  return blends(rotary) ? 1 - 0.1L * std::log(static_cast<long double>(rotary.scale)) : 1;
}

// It is passed on as a float, or its inverse is.
bool hasMagnitude(const mnk_rotary_embedding& rotary) {
  if (!rotary.has_yarn) return true;
  const long double magnitude = rotary.yarn.attention_factor * growthOf(rotary);
  if (!(magnitude > 0)) return false;
  for (const long double number : {magnitude, 1 / magnitude}) {
    const auto single = static_cast<float>(number);
    if (single == 0 || !isFinite(single)) return false;
  }
  return true;
}

long double fastestOf(const Spec& spec, uint64_t headDim) {
  const RotaryEmbedding rotary = embeddingOf(spec);
  long double fastest = 0;
  for (uint64_t pair = 0; pair < rotary.ropeDim.value_or(headDim) / 2; ++pair) {
    fastest = std::max(fastest, std::abs(test::referenceFrequency(rotary, headDim, pair)));
  }
  return fastest;
}

}  // namespace

RotaryEmbedding embeddingOf(const Spec& spec) {
  const mnk_rotary_embedding& given = spec.numbers.rotary;
  RotaryEmbedding rotary{.layout = static_cast<RotaryLayout>(given.layout),
                         .base = given.base,
                         .pairing = static_cast<RotaryPairing>(given.pairing),
                         .otherAxis = static_cast<RotaryOtherAxis>(given.other_axis),
                         .scale = given.scale,
                         .isInverse = given.is_inverse};
  std::copy(given.sections, given.sections + 4, rotary.sections.begin());
  if (given.has_rope_dim) rotary.ropeDim = given.rope_dim;
  if (spec.hasFactors) rotary.frequencyFactors = spec.factors;
  if (given.has_yarn) {
    rotary.yarn = YaRN{.originalContext = given.yarn.original_context,
                       .extensionFactor = given.yarn.extension_factor,
                       .attentionFactor = given.yarn.attention_factor,
                       .betaFast = given.yarn.beta_fast,
                       .betaSlow = given.yarn.beta_slow,
                       .roundsCorners = !given.yarn.keeps_fractions};
  }
  return rotary;
}

uint64_t highestAxisOf(const mnk_rotary_embedding& rotary, uint64_t ropeDim) {
  if (!hasSections(rotary)) return 0;
  const uint64_t round = roundOf(rotary);
  uint64_t highest = 0;
  for (uint64_t pair = 0; pair < ropeDim / 2; ++pair) {
    uint64_t place = pair % round, axis = 0;
    if (rotary.layout == MNK_IMROPE) {
      const uint64_t turn = place / 3;  // of the three axes
      axis = turn < rotary.sections[place % 3] ? place % 3 : (rotary.other_axis == MNK_OTHER_AXIS_0 ? 0 : 3);
    } else {
      while (axis < 3 && place >= rotary.sections[axis]) place -= rotary.sections[axis++];
    }
    highest = std::max(highest, axis);
  }
  return highest;
}

std::string refusalOfRotary(const Spec& spec, uint64_t headDim, uint64_t axes) {
  const mnk_rotary_embedding& rotary = spec.numbers.rotary;
  const uint64_t ropeDim = ropeDimOf(rotary, headDim);
  if (ropeDim == 0 || ropeDim % 2 == 1) return "the rope dim is odd or zero";
  if (ropeDim > headDim) return "the rope dim is larger than the head dim";
  if (ropeDim > kMostElements) return "too many elements turn";
  if (!(rotary.base > 0) || !isFinite(rotary.base)) return "the base is not a positive number";
  if (!(rotary.scale > 0) || !isFinite(rotary.scale)) return "the scale is not a positive number";
  if (std::string what = refusalOfSections(rotary, ropeDim, headDim); !what.empty()) return what;
  if (spec.hasFactors && !spec.factors.empty()) {
    if (2 * spec.factors.size() != ropeDim) return "there are not as many frequency factors as pairs";
    for (const float factor : spec.factors) {
      if (std::isnan(factor) || factor <= 0) return "a frequency factor is not a positive number";
    }
  }
  if (std::string what = refusalOfYaRN(rotary); !what.empty()) return what;
  if (!hasMagnitude(rotary)) return "the magnitude is not a positive number";
  if (fastestOf(spec, headDim) > kMostRadians) return "a pair turns too fast";
  return axes > 1 && highestAxisOf(rotary, ropeDim) >= axes ? "positions lack an axis" : "";
}

bool isRotaryOpen(const Spec& spec, uint64_t headDim) {
  // Rules that come before the limits say whether there are numbers to compare with them.
  const std::string what = refusalOfRotary(spec, headDim, 1);
  if (!what.empty() && what != "a pair turns too fast") return false;
  const mnk_rotary_embedding& rotary = spec.numbers.rotary;
  // Without factors and YaRN the first pair turns by the scale itself.
  const bool isExact = !spec.hasFactors && !rotary.has_yarn && rotary.base >= 1;
  return !isExact && std::abs(fastestOf(spec, headDim) / kMostRadians - 1) < 1e-9L;
}

}  // namespace mnk::fuzz
