#include "Ops/MultiRoPE/RotaryRules.hpp"

#include <algorithm>
#include <cmath>

#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/MultiRoPE/RotaryFrequencies.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

// In radians. A double cannot hold the fraction of a turn of a larger frequency precisely enough for large positions.
constexpr double kMaxFrequency = 65536;

bool isKnown(RotaryEmbedding::Layout layout) {
  return layout == RotaryEmbedding::Layout::interleavedPairs || layout == RotaryEmbedding::Layout::halfSplit ||
         hasSections(layout);
}

uint64_t ropeDim(const RotaryCheck& op) {
  return ropeDimOf(op.rotary, op.headDim);
}

bool isVision(const RotaryCheck& op) {
  return op.rotary.layout == RotaryEmbedding::Layout::vision;
}

bool isPositive(double value) {
  return std::isfinite(value) && value > 0;
}

std::string sectionsText(const RotaryEmbedding& rotary) {
  const auto& s = rotary.sections;
  return fmt::format("[{}, {}, {}, {}]", s[0], s[1], s[2], s[3]);
}

const float* firstBadFactor(const RotaryCheck& op) {
  const auto& factors = op.rotary.frequencyFactors;
  const auto found = std::find_if(factors.begin(), factors.end(), [](float factor) { return !(factor > 0); });
  return found == factors.end() ? nullptr : &*found;
}

bool blends(const RotaryCheck& op) {
  return op.rotary.yarn && op.rotary.yarn->extensionFactor != 0;
}

// Context and betas are ignored if the extension factor is 0.
bool isSoundYaRN(const RotaryCheck& op) {
  const RotaryEmbedding::YaRN& yarn = *op.rotary.yarn;
  return yarn.extensionFactor >= 0 && yarn.extensionFactor <= 1 && isPositive(yarn.attentionFactor) &&
         (!blends(op) || (yarn.originalContext > 0 && isPositive(yarn.betaFast) && isPositive(yarn.betaSlow)));
}

std::string yarnText(const RotaryEmbedding::YaRN& yarn) {
  return fmt::format("context {}, extension {}, attention {}, betas {} and {}", yarn.originalContext,
                     yarn.extensionFactor, yarn.attentionFactor, yarn.betaFast, yarn.betaSlow);
}

bool isMagnitude(double magnitude) {
  return isPositive(static_cast<float>(magnitude)) && isPositive(static_cast<float>(1 / magnitude));
}

// The first that is too fast, or is NaN.
std::optional<double> firstTooFast(const RotaryCheck& op) {
  for (double frequency : frequenciesOf(op.rotary, op.headDim)) {
    if (!(std::abs(frequency) <= kMaxFrequency)) return std::abs(frequency);
  }
  return std::nullopt;
}

uint32_t highestAxis(const RotaryCheck& op) {
  uint32_t highest = 0;
  for (uint64_t pair = 0; pair < ropeDim(op) / 2; ++pair) highest = std::max(highest, axisOf(op.rotary, pair));
  return highest;
}

constexpr Rule<RotaryCheck> kRotaryRules[] = {
    INVALID_IF(!isKnown(op.rotary.layout), "the layout is not known",
               fmt::format("mode {}", static_cast<uint32_t>(op.rotary.layout)),
               "0, 2, 8 (mrope), 24 (vision) or 40 (imrope)",
               "Pass one of the layouts that RotaryEmbedding::Layout names."),

    INVALID_IF(op.rotary.pairing > RotaryEmbedding::Pairing::neighbors, "the pairing is not known",
               fmt::format("pairing {}", static_cast<uint32_t>(op.rotary.pairing)),
               "halfOfRopeDim, halfOfHeadDim or neighbors",
               "Pass one of the pairings that RotaryEmbedding::Pairing names."),

    INVALID_IF(op.rotary.otherAxis > RotaryEmbedding::OtherAxis::axis3, "the axis of spare pairs is not known",
               fmt::format("otherAxis {}", static_cast<uint32_t>(op.rotary.otherAxis)), "axis0 or axis3",
               "Pass one of the axes that RotaryEmbedding::OtherAxis names."),

    INVALID_IF(ropeDim(op) == 0 || ropeDim(op) % 2 != 0, "the rope dim is odd or zero", fmt::format("{}", ropeDim(op)),
               "an even number of at least 2",
               "Pass how many elements turn, in pairs, or leave it out for all of them."),

    INVALID_IF(ropeDim(op) > op.headDim, "the rope dim is larger than the head dim", fmt::format("{}", ropeDim(op)),
               fmt::format("at most {}", op.headDim), "Rotate at most the whole head."),

    INVALID_IF(ropeDim(op) > MultiRoPE::kMaxRopeDim, "too many elements turn",
               fmt::format("a rope dim of {}", ropeDim(op)), fmt::format("at most {}", MultiRoPE::kMaxRopeDim),
               "Set a smaller rope dim, or rotate parts of the heads by themselves."),

    INVALID_IF(!isPositive(op.rotary.base), "the base is not a positive number", fmt::format("{}", op.rotary.base),
               "a finite number greater than 0", "Pass the model's base, such as 10000."),

    INVALID_IF(!isPositive(op.rotary.scale), "the scale is not a positive number", fmt::format("{}", op.rotary.scale),
               "a finite number greater than 0",
               "Pass what positions are multiplied by: 1, or less for a longer context."),

    INVALID_IF(!hasSections(op.rotary.layout) && op.rotary.sections != decltype(op.rotary.sections){},
               "sections are given to a layout without sections", sectionsText(op.rotary), "no sections",
               "Leave them out, or choose mrope, imrope or vision."),

    INVALID_IF(hasSections(op.rotary.layout) && pairsOfRound(op.rotary) == 0, "the sections are empty",
               sectionsText(op.rotary), "at least one pair", "Pass the model's sections, counted in pairs."),

    INVALID_IF(isVision(op) && ropeDim(op) != op.headDim, "vision rotates whole heads",
               fmt::format("a rope dim of {}", ropeDim(op)), fmt::format("{}, the head dim", op.headDim),
               "Leave the rope dim out."),

    INVALID_IF(isVision(op) && pairsOfRound(op.rotary) != op.headDim / 2,
               "the sections of vision do not cover the head",
               fmt::format("{} and {}", op.rotary.sections[0], op.rotary.sections[1]),
               fmt::format("a sum of {}, half the head dim", op.headDim / 2),
               "Give each of the two axes its share of the pairs."),

    INVALID_IF(!op.rotary.frequencyFactors.empty() && op.rotary.frequencyFactors.size() != ropeDim(op) / 2,
               "the number of frequency factors is not the number of pairs",
               fmt::format("{}", op.rotary.frequencyFactors.size()), fmt::format("{}, or none", ropeDim(op) / 2),
               "Pass one divisor for each pair."),

    INVALID_IF(firstBadFactor(op), "a frequency factor is not a positive number",
               fmt::format("{}", *firstBadFactor(op)), "numbers greater than 0; with infinity a pair does not turn",
               "Pass the model's divisors."),

    INVALID_IF(blends(op) && isVision(op), "YaRN has no meaning for vision", "YaRN with vision",
               "a layout with one ladder of frequencies", "Leave YaRN out."),

    INVALID_IF(op.rotary.yarn && !isSoundYaRN(op), "a number of YaRN is out of range", yarnText(*op.rotary.yarn),
               "an extension factor from 0 to 1, and all others finite and greater than 0",
               "Pass the numbers that YaRN's definition names; a configuration's attention_factor may mean another."),

    INVALID_IF(blends(op) && op.rotary.base <= 1, "YaRN needs a base above 1", fmt::format("{}", op.rotary.base),
               "a number greater than 1", "Pass the model's base."),

    INVALID_IF(blends(op) && op.rotary.yarn->betaFast <= op.rotary.yarn->betaSlow,
               "YaRN needs a betaFast above its betaSlow",
               fmt::format("betaFast {}, betaSlow {}", op.rotary.yarn->betaFast, op.rotary.yarn->betaSlow),
               "betaFast greater than betaSlow", "Pass the configuration's beta_fast and beta_slow: often 32 and 1."),

    INVALID_IF(blends(op) && op.rotary.scale > 1, "YaRN needs a scale of at most 1", fmt::format("{}", op.rotary.scale),
               "a number greater than 0 and at most 1", "Pass 1 / factor, where factor is the configuration's."),

    INVALID_IF(!isMagnitude(magnitudeOf(op.rotary)), "the magnitude is out of range",
               fmt::format("{} at scale {}", magnitudeOf(op.rotary), op.rotary.scale),
               "a finite f32 greater than 0 with a finite reciprocal", "Pass another attention factor: often 1."),

    INVALID_IF(firstTooFast(op), "a pair turns too fast", fmt::format("{} radians a position", *firstTooFast(op)),
               fmt::format("at most {}", kMaxFrequency),
               "Check base, scale and frequency factors: most models stay below 1."),

    INVALID_IF(op.axesDiffer && !hasSections(op.rotary.layout), "positions have axes that the layout does not use",
               fmt::format("different positions on {} axes, and a layout of one", op.axes),
               "a layout with sections, or positions on one axis",
               "Choose the model's layout, such as mrope, or pass the positions of one axis."),

    INVALID_IF(op.axes != 1 && highestAxis(op) >= op.axes, "positions lack an axis",
               fmt::format("{} axes of positions, and pairs of axis {}", op.axes, highestAxis(op)),
               fmt::format("{} axes, or 1 for all", highestAxis(op) + 1),
               "Pass positions on each axis that the sections use; for imrope, otherAxis says where spare pairs go."),
};

}  // namespace

std::span<const Rule<RotaryCheck>> rotaryRules() {
  return kRotaryRules;
}

}  // namespace mnk
