// What MultiRoPE rotates by: axes and frequencies that were worked out by hand, and how good angles are, from position
// 1 to the last one there is.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/RawBytes.hpp"
#include "MultiRoPECase.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"

namespace mnk::test {

namespace {

using Layout = RotaryEmbedding::Layout;

std::string axes(const RotaryEmbedding& rotary, uint64_t pairs) {
  std::string text;
  for (uint64_t pair = 0; pair < pairs; ++pair) text += fmt::format("{}", axisOf(rotary, pair));
  return text;
}

void expectCloseTo(double got, double expected, double allowed) {
  if (std::abs(got - expected) <= allowed) return;
  fail(__FILE__, __LINE__, fmt::format("got {}, expected {} within {}", got, expected, allowed));
}

// One head for each token, f32, with positions in a tensor: axis after axis.
MultiRoPERun rotatedBy(const std::shared_ptr<Device>& device, const RotaryEmbedding& rotary, uint64_t axes,
                       const std::vector<uint32_t>& positions, const std::vector<float>& queries) {
  const uint64_t tokens = positions.size() / axes;
  Seeded random;
  MultiRoPERun opRun(device,
                     {.name = "numbers",
                      .placing = RopePlacing::apart,
                      .tokens = tokens,
                      .heads = 1,
                      .keyHeads = 0,
                      .headDim = queries.size() / tokens,
                      .rotary = rotary,
                      .positions = RopeNumbers::u32,
                      .axes = axes},
                     random);
  opRun.set("queries", rawBytes(queries));
  opRun.set("positions", rawBytes(positions));
  run(device, opRun.op());
  opRun.expectResults();
  return opRun;
}

// Pairs that are all (1, 0) become cosines, then sines, of one token at the positions 3, 5, 7 and 9 of the axes.
void expectCosinesAndSines(const RotaryEmbedding& rotary, const std::vector<double>& expected) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    std::vector<float> ones(expected.size());
    std::fill_n(ones.begin(), ones.size() / 2, 1.0f);
    const auto got = numbersIn<float>(rotatedBy(device, rotary, 4, {3, 5, 7, 9}, ones).now("rotated queries"));
    for (size_t i = 0; i < expected.size(); ++i) expectCloseTo(got[i], expected[i], 1e-5);
  });
}

// Against exact values: the largest error, and for each token the squares of its errors by those of its values.
struct Errors {
  double largest = 0;
  std::vector<double> nmse = {};
};
Errors errorsOf(const MultiRoPERun& run) {
  const auto got = numbersIn<float>(run.now("rotated queries"));
  const auto exact = reference(run.op(), run.memory().before).queries;
  Errors errors;
  for (size_t begin = 0, headDim = run.op().queries.resolved().headDim; begin < got.size(); begin += headDim) {
    double squares = 0, sum = 0;
    for (size_t index = begin; index < begin + headDim; ++index) {
      const double error = static_cast<double>(got[index]) - exact[index].value;
      squares += error * error, sum += exact[index].value * exact[index].value;
      errors.largest = std::max(errors.largest, std::abs(error));
    }
    errors.nmse.push_back(squares / sum);
  }
  return errors;
}

}  // namespace

// Sections [2, 2, 1, 0] give the five pairs the axes 0, 1, 2, 0, 1; angles are 3, 5 * 10^-0.8, 7 * 10^-1.6,
// 3 * 10^-2.4 and 5 * 10^-3.2.
TEST(RotaryNumbers, ImropeByHand) {
  expectCosinesAndSines({.layout = Layout::imrope, .sections = {2, 2, 1, 0}},
                        {-0.989992497, 0.702105263, 0.984581331, 0.999928681, 0.999995024,  //
                         0.141120008, 0.712073170, 0.174927419, 0.011942931, 0.003154781});
}

// y turns the first section and x the second, each from the fastest frequency: angles 3, 0.03, 5 and 0.05.
TEST(RotaryNumbers, VisionByHand) {
  expectCosinesAndSines({.layout = Layout::vision, .sections = {2, 2}},
                        {-0.989992497, 0.999550034, 0.283662185, 0.998750260,  //
                         0.141120008, 0.029995500, -0.958924275, 0.049979169});
}

// Mrope takes sections in order and starts again; imrope takes turns until a section is used up; vision has two axes.
TEST(RotaryNumbers, SectionsGivePairsTheirAxes) {
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
// 8 ln(2000 / (2 pi r)) / (2 ln 100): 1.994 for 32 and 5.006 for 1, so the ramp goes from 1 to 6 where it is rounded.
TEST(RotaryNumbers, YaRNBlendsBetweenItsCorners) {
  const double low = 8 * std::log(2000 / (2 * std::numbers::pi * 32)) / (2 * std::log(100.0));
  const double high = 8 * std::log(2000 / (2 * std::numbers::pi)) / (2 * std::log(100.0));
  struct Kept {
    float extension;
    bool roundsCorners;
    size_t pair;
    double share;
  };
  for (const auto& [extension, roundsCorners, pair, share] :
       {Kept{1, true, 0, 1}, Kept{1, true, 1, 1}, Kept{1, true, 2, 0.8}, Kept{1, true, 3, 0.6},
        Kept{0.5f, true, 0, 0.5}, Kept{1, false, 3, 1 - (3 - low) / (high - low)}, Kept{0, false, 0, 0}}) {
    const RotaryEmbedding::YaRN yarn{
        .originalContext = 2000, .extensionFactor = extension, .roundsCorners = roundsCorners};
    const double plain = std::pow(100.0, -0.25 * static_cast<double>(pair));
    const double got = frequenciesOf({.base = 100, .scale = 0.25, .yarn = yarn}, 8)[pair];
    expectCloseTo(got / plain, 0.25 * (1 - share) + share, 1e-14);
  }
  // Where a base without bounds would turn a pair infinitely fast.
  const auto frequencies = frequenciesOf({.base = 5e-324, .frequencyFactors = {57, INFINITY, INFINITY}}, 6);
  EXPECT(frequencies[1] == 0 && frequencies[2] == 0);
}

TEST(RotaryNumbers, MagnitudeGrowsWithTheContextUnlessNothingIsBlended) {
  using YaRN = RotaryEmbedding::YaRN;
  EXPECT_EQ(magnitudeOf({.scale = 0.25}), 1.0);
  const YaRN twice{.originalContext = 4096, .attentionFactor = 2};
  expectCloseTo(magnitudeOf({.scale = 0.25, .yarn = twice}), 2 * (1 + 0.1 * std::log(4.0)), 1e-15);
  EXPECT_EQ(magnitudeOf({.scale = 0.25, .yarn = YaRN{.extensionFactor = 0, .attentionFactor = 2}}), 2.0);
  // The least scale that there is has a logarithm too.
  expectCloseTo(magnitudeOf({.scale = 5e-324, .yarn = YaRN{.originalContext = 4096}}), 75.44400719213812, 1e-12);
}

// Every f32 result carries roundings of its own: of cosine, sine, two products and a sum. They leave an NMSE of some
// 2e-15, wherever the position. Far beyond a million the double in which frequencies are counted begins to show: an
// angle is wrong by a few 2^-53 of the position. Programs that compute in float have 1e-7 and more at a million.
TEST(MultiRoPEPrecision, FarPositionsAreAsGoodAsNearOnes) {
  const std::vector<uint32_t> positions{1,      1000,    4096,       32768,      131071,
                                        262144, 1000000, 2147483647, 2147483648, 4294967295};
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    for (const double base : {1e4, 1e6, 5e6, 1e7}) {
      Seeded random;
      const auto queries = numbersIn<float>(plainRopeElements(random, DType::f32, positions.size() * 128));
      const Errors errors = errorsOf(rotatedBy(device, {.base = base}, 1, positions, queries));
      for (size_t i = 0; i < positions.size(); ++i) {
        const Context context(fmt::format("position {}, base {}: NMSE", positions[i], base));
        expectCloseTo(errors.nmse[i], 0, 1e-14 + std::pow(positions[i] * 0x1p-53, 2));
      }
    }
  });
}

// Pairs (1, 0) become (cosine, sine), with errors of at most the 2^-23 that Rotary.h promises. A circle of 4096
// positions has them on every quarter and eighth of a turn.
TEST(MultiRoPEPrecision, CosineAndSineAreGoodAllAround) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const double circle = 2 * std::numbers::pi / 4096;
    Seeded random;
    std::vector<uint32_t> around, anywhere;
    std::vector<float> queries;
    for (uint32_t position = 0; position < 4096; ++position) {
      around.push_back(position);
      anywhere.push_back(static_cast<uint32_t>(random.below(1 << 24)));
      queries.insert(queries.end(), {1, 0});
    }
    const auto expectGood = [&](double scale, const std::vector<uint32_t>& positions) {
      const Context context(fmt::format("scale {}: largest error", scale));
      expectCloseTo(errorsOf(rotatedBy(device, {.scale = scale}, 1, positions, queries)).largest, 0, 0x1p-23);
    };
    expectGood(circle, around);
    expectGood(circle / 3.7, around);
    expectGood(1, anywhere);
  });
}

}  // namespace mnk::test
