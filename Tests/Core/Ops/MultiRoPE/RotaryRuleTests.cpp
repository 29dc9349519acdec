// Every rule of a RotaryEmbedding, broken on purpose.
#include <cmath>

#include "Harness/Check.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MultiRoPE/RotaryRules.hpp"

namespace mnk::test {

namespace {

constexpr float kNaN = NAN;
constexpr float kInfinity = INFINITY;

constexpr std::string_view kModes = "0, 2, 8 (mrope), 24 (vision) or 40 (imrope)";
constexpr std::string_view kHowMany = "Pass how many elements turn, in pairs, or leave it out for all of them.";
constexpr std::string_view kPositive = "a finite number greater than 0";
constexpr std::string_view kBase = "Pass the model's base, such as 10000.";
constexpr std::string_view kScale = "Pass what positions are multiplied by: 1, or less for a longer context.";
constexpr std::string_view kShares = "Give each of the two axes its share of the pairs.";
constexpr std::string_view kFactors = "numbers greater than 0; with infinity a pair does not turn";
constexpr std::string_view kSound = "a finite extension factor, and all others finite and greater than 0";
constexpr std::string_view kConfiguration =
    "Pass the numbers that YaRN's definition names; a configuration's attention_factor may mean another.";
constexpr std::string_view kMagnitude = "attention factor * (1 + 0.1 ln(1 / scale)) greater than 0";
constexpr std::string_view kAnother = "Pass a smaller scale or another attention factor.";
constexpr std::string_view kFast = "Check base, scale and frequency factors: most models stay below 1.";
constexpr std::string_view kAxes =
    "Pass positions on each axis that the sections use; for imrope, otherAxis says where spare pairs go.";

const BrokenRule<RotaryCheck> kBroken[] = {
    {"the layout is not known", "mode 3", kModes, "Pass one of the layouts that RotaryLayout names.",
     [](RotaryCheck& c) { c.rotary.layout = static_cast<RotaryLayout>(3); }},
    {"the rope dim is odd or zero", "0", "an even number of at least 2", kHowMany,
     [](RotaryCheck& c) { c.rotary.ropeDim = 0; }},
    {"the rope dim is odd or zero", "7", "an even number of at least 2", kHowMany,
     [](RotaryCheck& c) { c.rotary.ropeDim = 7; }},
    {"the rope dim is larger than the head dim", "18", "at most 16", "Rotate at most the whole head.",
     [](RotaryCheck& c) { c.rotary.ropeDim = 18; }},
    {"too many elements turn", "a rope dim of 2048", "at most 1024",
     "Set a smaller rope dim, or rotate parts of the heads by themselves.", [](RotaryCheck& c) { c.headDim = 2048; }},
    {"the base is not a positive number", "0", kPositive, kBase, [](RotaryCheck& c) { c.rotary.base = 0; }},
    {"the base is not a positive number", "-2", kPositive, kBase, [](RotaryCheck& c) { c.rotary.base = -2; }},
    {"the base is not a positive number", "inf", kPositive, kBase, [](RotaryCheck& c) { c.rotary.base = kInfinity; }},
    {"the base is not a positive number", "nan", kPositive, kBase, [](RotaryCheck& c) { c.rotary.base = kNaN; }},
    {"the scale is not a positive number", "0", kPositive, kScale, [](RotaryCheck& c) { c.rotary.scale = 0; }},
    {"the scale is not a positive number", "nan", kPositive, kScale, [](RotaryCheck& c) { c.rotary.scale = kNaN; }},
    {"sections are given to a layout without sections", "[0, 0, 8, 0]", "no sections",
     "Leave them out, or choose mrope, imrope or vision.",
     [](RotaryCheck& c) {
       c.rotary.sections = {0, 0, 8, 0};
     }},
    {"the sections are empty", "[0, 0, 0, 0]", "at least one pair", "Pass the model's sections, counted in pairs.",
     [](RotaryCheck& c) { c.rotary.layout = RotaryLayout::mrope; }},
    {"the sections are empty", "[0, 0, 4, 4]", "at least one pair", "Pass the model's sections, counted in pairs.",
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::vision;
       c.rotary.sections = {0, 0, 4, 4};
     }},
    {"vision rotates whole heads", "a rope dim of 8", "16, the head dim", "Leave the rope dim out.",
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::vision;
       c.rotary.sections = {2, 2, 0, 0};
       c.rotary.ropeDim = 8;
     }},
    {"the sections of vision do not cover the head", "4 and 3", "a sum of 8, half the head dim", kShares,
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::vision;
       c.rotary.sections = {4, 3, 1, 0};
     }},
    {"the sections of vision do not cover the head", "4294967295 and 9", "a sum of 8, half the head dim", kShares,
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::vision;
       c.rotary.sections = {UINT32_MAX, 9, 0, 0};
     }},
    {"there are not as many frequency factors as pairs", "16", "8, or none", "Pass one divisor for each pair.",
     [](RotaryCheck& c) { c.rotary.frequencyFactors.assign(16, 1); }},
    {"a frequency factor is not a positive number", "0", kFactors, "Pass the model's divisors.",
     [](RotaryCheck& c) { c.rotary.frequencyFactors = {1, 1, 1, 1, 1, 1, 1, 0}; }},
    {"a frequency factor is not a positive number", "nan", kFactors, "Pass the model's divisors.",
     [](RotaryCheck& c) { c.rotary.frequencyFactors = {1, kNaN, 1, 1, 1, 1, 1, 1}; }},
    {"YaRN has no meaning for vision", "YaRN with vision", "a layout with one ladder of frequencies", "Leave YaRN out.",
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::vision;
       c.rotary.sections = {4, 4, 0, 0};
       c.rotary.yarn = YaRN{.originalContext = 4096};
     }},
    {"a number of YaRN is out of range", "context 0, extension 1, attention 1, betas 32 and 1", kSound, kConfiguration,
     [](RotaryCheck& c) { c.rotary.yarn = YaRN{}; }},
    {"a number of YaRN is out of range", "context 9, extension nan, attention 1, betas 32 and 1", kSound,
     kConfiguration, [](RotaryCheck& c) { c.rotary.yarn = YaRN{.originalContext = 9, .extensionFactor = kNaN}; }},
    {"a number of YaRN is out of range", "context 9, extension 1, attention 0, betas 32 and 1", kSound, kConfiguration,
     [](RotaryCheck& c) { c.rotary.yarn = YaRN{.originalContext = 9, .attentionFactor = 0}; }},
    {"a number of YaRN is out of range", "context 9, extension 1, attention 1, betas inf and 1", kSound, kConfiguration,
     [](RotaryCheck& c) { c.rotary.yarn = YaRN{.originalContext = 9, .betaFast = kInfinity}; }},
    {"a number of YaRN is out of range", "context 9, extension 1, attention 1, betas 32 and -1", kSound, kConfiguration,
     [](RotaryCheck& c) { c.rotary.yarn = YaRN{.originalContext = 9, .betaSlow = -1}; }},
    {"YaRN needs a base above 1", "1", "a number greater than 1", "Pass the model's base.",
     [](RotaryCheck& c) {
       c.rotary.base = 1;
       c.rotary.yarn = YaRN{.originalContext = 9};
     }},
    {"the magnitude is not a positive number", "-1 at scale 485165195.4097903", kMagnitude, kAnother,
     [](RotaryCheck& c) {
       c.rotary.scale = std::exp(20.0);
       c.rotary.yarn = YaRN{.originalContext = 9};
     }},
    {"the magnitude is not a positive number", "1.401298464324817e-45 at scale 1", kMagnitude, kAnother,
     [](RotaryCheck& c) { c.rotary.yarn = YaRN{.originalContext = 9, .attentionFactor = 1e-45f}; }},
    {"a pair turns too fast", "100000 radians a position", "at most 65536", kFast,
     [](RotaryCheck& c) { c.rotary.scale = 100000; }},
    {"a pair turns too fast", "inf radians a position", "at most 65536", kFast,
     [](RotaryCheck& c) {
       c.rotary.scale = 1e300;
       c.rotary.frequencyFactors.assign(8, 1e-30f);
     }},
    {"positions lack an axis", "2 axes of positions, and pairs of axis 2", "3 axes, or 1 for all", kAxes,
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::mrope;
       c.rotary.sections = {2, 3, 3, 0};
       c.axes = 2;
     }},
    {"positions lack an axis", "3 axes of positions, and pairs of axis 3", "4 axes, or 1 for all", kAxes,
     [](RotaryCheck& c) {
       c.rotary.layout = RotaryLayout::imrope;
       c.rotary.sections = {4, 2, 2, 0};
       c.rotary.otherAxis = RotaryOtherAxis::axis3;
       c.axes = 3;
     }},
};

}  // namespace

TEST(RotaryRules, EachIsBrokenByItsCase) {
  expectEveryRuleIsBroken<RotaryCheck>(rotaryRules(), kBroken);
  for (const BrokenRule<RotaryCheck>& broken : kBroken) {
    RotaryCheck check{.rotary = {}, .headDim = 16, .axes = 1};
    EXPECT(checkRules(rotaryRules(), check, "Rotary"));
    broken.breakIn(check);
    expectBroken<RotaryCheck>(rotaryRules(), check, broken, "Rotary");
  }
}

TEST(RotaryRules, WhatModelsShipIsSound) {
  const std::pair<RotaryEmbedding, uint64_t> models[] = {
      {{.layout = RotaryLayout::mrope, .sections = {16, 24, 24, 0}, .base = 1e6}, 128},
      {{.layout = RotaryLayout::imrope, .sections = {24, 20, 20, 0}, .base = 5e6}, 128},
      {{.layout = RotaryLayout::imrope, .sections = {11, 11, 10, 0}, .base = 1e7, .ropeDim = 64}, 256},
      {{.layout = RotaryLayout::vision, .sections = {18, 18, 18, 18}}, 72},
      {{.base = 1e6, .scale = 0.25, .yarn = YaRN{.originalContext = 32768}}, 128},
      {{.base = 1e6, .frequencyFactors = std::vector<float>(64, kInfinity)}, 128},
      {{.base = 0.5}, 64},
      {{.base = 0.5, .scale = 0.5, .yarn = YaRN{.extensionFactor = 0, .attentionFactor = 1.19f, .betaFast = 0}}, 64},
      {{.layout = RotaryLayout::mrope, .sections = {8, 12, 12, 0}, .pairing = RotaryPairing::neighbors}, 64},
      {{.base = 1}, MultiRoPE::kMaxRopeDim},
  };
  for (const auto& [rotary, headDim] : models) {
    for (const uint64_t axes : {1u, 3u, 4u}) {
      const auto checked = checkRules(rotaryRules(), RotaryCheck{rotary, headDim, axes}, "Rotary");
      EXPECT_EQ(checked ? "" : checked.error().message(), "");
    }
  }
}

}  // namespace mnk::test
