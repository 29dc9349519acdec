// The numbers of a RotaryEmbedding against some that were worked out by hand.
#include "Ops/MultiRoPE/MultiRoPE.hpp"

#include <cmath>

#include "Harness/Check.hpp"

namespace mnk::test {

namespace {

constexpr double kPi = 3.14159265358979323846;

std::string axes(const RotaryEmbedding& rotary, uint64_t pairs) {
  std::string text;
  for (uint64_t pair = 0; pair < pairs; ++pair) text += fmt::format("{}", axisOf(rotary, pair));
  return text;
}

void expectCloseTo(double got, double expected, double relative) {
  if (std::abs(got - expected) <= relative * std::abs(expected)) return;
  fail(__FILE__, __LINE__, fmt::format("got {}, expected {}", got, expected));
}

}  // namespace

// Where a base without bounds would turn a pair infinitely fast.
TEST(RotaryFrequencies, WithAnInfiniteFactorNothingTurns) {
  const auto frequencies = frequenciesOf({.base = 5e-324, .frequencyFactors = {57, INFINITY, INFINITY}}, 6);
  EXPECT_EQ(frequencies[1], 0.0);
  EXPECT_EQ(frequencies[2], 0.0);
}

// Mrope takes sections in order and starts again; imrope takes turns until a section is used up; vision has two axes.
TEST(RotaryFrequencies, SectionsGivePairsTheirAxes) {
  using enum RotaryEmbedding::Layout;
  EXPECT_EQ(axes({.layout = mrope, .sections = {2, 3, 1, 2}}, 18), "001112330011123300");
  EXPECT_EQ(axes({.layout = mrope, .sections = {0, 2, 0, 1}}, 7), "1131131");
  EXPECT_EQ(axes({.layout = halfSplit}, 3), "000");
  EXPECT_EQ(axes({.layout = vision, .sections = {2, 3, 9, 9}}, 5), "00111");
  RotaryEmbedding rotary{.layout = imrope, .sections = {4, 2, 2, 0}};
  EXPECT_EQ(axes(rotary, 10), "0120120001");
  rotary.otherAxis = RotaryEmbedding::OtherAxis::axis3;
  EXPECT_EQ(axes(rotary, 10), "0120120301");
  // Qwen3-VL: with 64 pairs, only 61 and 62 are left over.
  rotary.sections = {24, 20, 20, 0};
  EXPECT_EQ(axes(rotary, 64).find('3'), 61u);
  EXPECT_EQ(axes(rotary, 64).substr(58), "120330");
}

// dims 8, base 100, context 2000, betas 32 and 1. The pair that turns r times has the number
// 8 ln(2000 / (2 pi r)) / (2 ln 100): 1.994 for 32 and 5.006 for 1, so the ramp goes from 1 to 6.
TEST(RotaryFrequencies, YaRNBlendsBetweenItsCorners) {
  const RotaryEmbedding::YaRN yarn{.originalContext = 2000};
  const auto frequencies = frequenciesOf({.base = 100, .scale = 0.25, .yarn = yarn}, 8);
  const double kept[] = {1, 1, 0.8, 0.6};
  for (size_t pair = 0; pair < 4; ++pair) {
    const double plain = std::pow(100.0, -0.25 * static_cast<double>(pair));
    expectCloseTo(frequencies[pair], plain * (0.25 * (1 - kept[pair]) + kept[pair]), 1e-14);
  }
  RotaryEmbedding half{.base = 100, .scale = 0.25, .yarn = yarn};
  half.yarn->extensionFactor = 0.5f;
  expectCloseTo(frequenciesOf(half, 8)[0], 0.25 * 0.5 + 0.5, 1e-14);
  half.yarn->extensionFactor = 1;
  half.yarn->roundsCorners = false;
  // The ramp goes from 1.994 to 5.006 then.
  const double low = 8 * std::log(2000 / (2 * kPi * 32)) / (2 * std::log(100.0));
  const double high = 8 * std::log(2000 / (2 * kPi)) / (2 * std::log(100.0));
  const double share = 1 - (3 - low) / (high - low);
  expectCloseTo(frequenciesOf(half, 8)[3], std::pow(100.0, -0.75) * (0.25 * (1 - share) + share), 1e-14);
  half.yarn->extensionFactor = 0;
  expectCloseTo(frequenciesOf(half, 8)[0], 0.25, 1e-14);
}

TEST(RotaryFrequencies, MagnitudeGrowsWithTheContextUnlessNothingIsBlended) {
  RotaryEmbedding rotary{.scale = 0.25};
  EXPECT_EQ(magnitudeOf(rotary), 1.0);
  rotary.yarn = RotaryEmbedding::YaRN{.originalContext = 4096};
  expectCloseTo(magnitudeOf(rotary), 1 + 0.1 * std::log(4.0), 1e-15);
  rotary.yarn->attentionFactor = 2;
  expectCloseTo(magnitudeOf(rotary), 2 * (1 + 0.1 * std::log(4.0)), 1e-15);
  rotary.yarn->extensionFactor = 0;
  EXPECT_EQ(magnitudeOf(rotary), 2.0);
  // The least scale that there is has a logarithm too.
  expectCloseTo(magnitudeOf({.scale = 5e-324, .yarn = RotaryEmbedding::YaRN{.originalContext = 4096}}),
                1 + 0.1 * 744.4400719213812, 1e-12);
}

}  // namespace mnk::test
