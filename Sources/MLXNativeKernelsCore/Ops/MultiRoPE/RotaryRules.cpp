#include "Ops/RotaryRules.hpp"

#include <algorithm>
#include <cmath>

#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Ops/RotaryFrequencies.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Check = RotaryCheck;

// Radians. A larger frequency has too few digits of a turn left in double for positions far away.
constexpr double kMaxFrequency = 65536;

bool isKnown(RotaryLayout layout) {
  return layout == RotaryLayout::interleavedPairs || layout == RotaryLayout::halfSplit || hasSections(layout);
}

uint64_t ropeDim(const Check& check) {
  return ropeDimOf(check.rotary, check.headDim);
}

bool isVision(const Check& check) {
  return check.rotary.layout == RotaryLayout::vision;
}

bool isPositive(double value) {
  return std::isfinite(value) && value > 0;
}

std::string sectionsText(const RotaryEmbedding& rotary) {
  const auto& s = rotary.sections;
  return fmt::format("[{}, {}, {}, {}]", s[0], s[1], s[2], s[3]);
}

const float* firstBadFactor(const Check& check) {
  const auto& factors = check.rotary.frequencyFactors;
  const auto found = std::find_if(factors.begin(), factors.end(), [](float factor) { return !(factor > 0); });
  return found == factors.end() ? nullptr : &*found;
}

bool blends(const Check& check) {
  return check.rotary.yarn && check.rotary.yarn->extensionFactor != 0;
}

// Context and betas are not read where nothing is blended.
bool isSoundYaRN(const Check& check) {
  const YaRN& yarn = *check.rotary.yarn;
  return std::isfinite(yarn.extensionFactor) && isPositive(yarn.attentionFactor) &&
         (!blends(check) || (yarn.originalContext > 0 && isPositive(yarn.betaFast) && isPositive(yarn.betaSlow)));
}

// The first that is too fast, or is no number.
std::optional<double> firstTooFast(const Check& check) {
  for (double frequency : frequenciesOf(check.rotary, check.headDim)) {
    if (!(std::abs(frequency) <= kMaxFrequency)) return std::abs(frequency);
  }
  return std::nullopt;
}

uint32_t highestAxis(const Check& check) {
  uint32_t highest = 0;
  for (uint64_t pair = 0; pair < ropeDim(check) / 2; ++pair) highest = std::max(highest, axisOf(check.rotary, pair));
  return highest;
}

constexpr Rule<Check> kRules[] = {
    {"the layout is not known", [](const Check& c) { return isKnown(c.rotary.layout); },
     [](const Check& c) { return fmt::format("mode {}", static_cast<uint32_t>(c.rotary.layout)); },
     [](const Check&) { return std::string("0, 2, 8 (mrope), 24 (vision) or 40 (imrope)"); },
     "Pass one of the layouts that RotaryLayout names."},

    {"the rope dim is odd or zero", [](const Check& c) { return ropeDim(c) != 0 && ropeDim(c) % 2 == 0; },
     [](const Check& c) { return fmt::format("{}", ropeDim(c)); },
     [](const Check&) { return std::string("an even number of at least 2"); },
     "Pass how many elements turn, in pairs, or leave it out for all of them."},

    {"the rope dim is larger than the head dim", [](const Check& c) { return ropeDim(c) <= c.headDim; },
     [](const Check& c) { return fmt::format("{}", ropeDim(c)); },
     [](const Check& c) { return fmt::format("at most {}", c.headDim); }, "Rotate at most the whole head."},

    {"too many elements turn", [](const Check& c) { return ropeDim(c) <= MultiRoPE::kMaxRopeDim; },
     [](const Check& c) { return fmt::format("a rope dim of {}", ropeDim(c)); },
     [](const Check&) { return fmt::format("at most {}", MultiRoPE::kMaxRopeDim); },
     "Set a smaller rope dim, or rotate parts of the heads by themselves."},

    {"the base is not a positive number", [](const Check& c) { return isPositive(c.rotary.base); },
     [](const Check& c) { return fmt::format("{}", c.rotary.base); },
     [](const Check&) { return std::string("a finite number greater than 0"); },
     "Pass the model's base, such as 10000."},

    {"the scale is not a positive number", [](const Check& c) { return isPositive(c.rotary.scale); },
     [](const Check& c) { return fmt::format("{}", c.rotary.scale); },
     [](const Check&) { return std::string("a finite number greater than 0"); },
     "Pass what positions are multiplied by: 1, or less for a longer context."},

    {"sections are given to a layout without sections",
     [](const Check& c) { return hasSections(c.rotary.layout) || c.rotary.sections == decltype(c.rotary.sections){}; },
     [](const Check& c) { return sectionsText(c.rotary); }, [](const Check&) { return std::string("no sections"); },
     "Leave them out, or choose mrope, imrope or vision."},

    {"the sections are empty",
     [](const Check& c) { return !hasSections(c.rotary.layout) || pairsOfRound(c.rotary) > 0; },
     [](const Check& c) { return sectionsText(c.rotary); },
     [](const Check&) { return std::string("at least one pair"); }, "Pass the model's sections, counted in pairs."},

    {"vision rotates whole heads", [](const Check& c) { return !isVision(c) || ropeDim(c) == c.headDim; },
     [](const Check& c) { return fmt::format("a rope dim of {}", ropeDim(c)); },
     [](const Check& c) { return fmt::format("{}, the head dim", c.headDim); }, "Leave the rope dim out."},

    {"the sections of vision do not cover the head",
     [](const Check& c) { return !isVision(c) || pairsOfRound(c.rotary) == c.headDim / 2; },
     [](const Check& c) { return fmt::format("{} and {}", c.rotary.sections[0], c.rotary.sections[1]); },
     [](const Check& c) { return fmt::format("a sum of {}, half the head dim", c.headDim / 2); },
     "Give each of the two axes its share of the pairs."},

    {"there are not as many frequency factors as pairs",
     [](const Check& c) {
       return c.rotary.frequencyFactors.empty() || c.rotary.frequencyFactors.size() == ropeDim(c) / 2;
     },
     [](const Check& c) { return fmt::format("{}", c.rotary.frequencyFactors.size()); },
     [](const Check& c) { return fmt::format("{}, or none", ropeDim(c) / 2); }, "Pass one divisor for each pair."},

    {"a frequency factor is not a positive number", [](const Check& c) { return !firstBadFactor(c); },
     [](const Check& c) { return fmt::format("{}", *firstBadFactor(c)); },
     [](const Check&) { return std::string("numbers greater than 0; with infinity a pair does not turn"); },
     "Pass the model's divisors."},

    {"YaRN has no meaning for vision", [](const Check& c) { return !blends(c) || !isVision(c); },
     [](const Check&) { return std::string("YaRN with vision"); },
     [](const Check&) { return std::string("a layout with one ladder of frequencies"); }, "Leave YaRN out."},

    {"a number of YaRN is out of range", [](const Check& c) { return !c.rotary.yarn || isSoundYaRN(c); },
     [](const Check& c) {
       const YaRN& yarn = *c.rotary.yarn;
       return fmt::format("context {}, extension {}, attention {}, betas {} and {}", yarn.originalContext,
                          yarn.extensionFactor, yarn.attentionFactor, yarn.betaFast, yarn.betaSlow);
     },
     [](const Check&) { return std::string("a finite extension factor, and all others finite and greater than 0"); },
     "Pass the numbers that YaRN's definition names; a configuration's attention_factor may mean another."},

    {"YaRN needs a base above 1", [](const Check& c) { return !blends(c) || c.rotary.base > 1; },
     [](const Check& c) { return fmt::format("{}", c.rotary.base); },
     [](const Check&) { return std::string("a number greater than 1"); }, "Pass the model's base."},

    {"the magnitude is not a positive number",
     [](const Check& c) {
       const double magnitude = magnitudeOf(c.rotary);
       return isPositive(static_cast<float>(magnitude)) && isPositive(static_cast<float>(1 / magnitude));
     },
     [](const Check& c) { return fmt::format("{} at scale {}", magnitudeOf(c.rotary), c.rotary.scale); },
     [](const Check&) { return std::string("attention factor * (1 + 0.1 ln(1 / scale)) greater than 0"); },
     "Pass a smaller scale or another attention factor."},

    {"a pair turns too fast", [](const Check& c) { return !firstTooFast(c); },
     [](const Check& c) { return fmt::format("{} radians a position", *firstTooFast(c)); },
     [](const Check&) { return fmt::format("at most {}", kMaxFrequency); },
     "Check base, scale and frequency factors: most models stay below 1."},

    {"positions lack an axis", [](const Check& c) { return c.axes == 1 || highestAxis(c) < c.axes; },
     [](const Check& c) { return fmt::format("{} axes of positions, and pairs of axis {}", c.axes, highestAxis(c)); },
     [](const Check& c) { return fmt::format("{} axes, or 1 for all", highestAxis(c) + 1); },
     "Pass positions on each axis that the sections use; for imrope, otherAxis says where spare pairs go."},
};

}  // namespace

std::span<const Rule<RotaryCheck>> rotaryRules() {
  return kRules;
}

}  // namespace mnk
