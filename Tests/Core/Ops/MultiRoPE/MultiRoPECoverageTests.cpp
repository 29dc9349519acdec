// One test for each that mlx-native has for its rope_multi: the call here that does the same, checked against the
// formula that is documented there, within what is allowed there. The page "Coverage" of the documentation lists them.
#include <array>
#include <cmath>

#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "MultiRoPERun.hpp"

namespace mnk::test {

namespace {

// rope_multi's parameters. Its mode is the number of the layout.
struct RopeMulti {
  RotaryEmbedding::Layout mode;
  uint64_t headDim;
  uint64_t ropeDim;
  uint64_t heads;
  uint64_t tokens;
  float base;
  std::array<uint32_t, 4> sections;
  DType dtype = DType::f32;
};

MultiRoPECase caseOf(const RopeMulti& rope) {
  return {.name = "rope_multi",
          .from = rope.dtype,
          .into = rope.dtype,
          .placing = RopePlacing::apart,
          .tokens = rope.tokens,
          .heads = rope.heads,
          .keyHeads = 0,
          .headDim = rope.headDim,
          .rotary = {.layout = rope.mode,
                     .sections = rope.sections,
                     .base = rope.base,
                     .ropeDim = rope.ropeDim,
                     .pairing = RotaryEmbedding::Pairing::halfOfHeadDim,
                     .otherAxis = RotaryEmbedding::OtherAxis::axis3},
          .positions = RopeNumbers::i32,
          .axes = 4};
}

// The position of a token on an axis.
using Positions = int32_t (*)(uint64_t axis, uint64_t token);

int32_t imagePosition(uint64_t axis, uint64_t token) {
  return static_cast<int32_t>((token * 5 + axis * 11 + token * axis * 3) % 43);
}

MultiRoPERun runOf(const std::shared_ptr<Device>& device, const RopeMulti& rope, Positions positions) {
  Seeded random;
  MultiRoPERun opRun(device, caseOf(rope), random);
  opRun.set("queries", plainRopeElements(random, rope.dtype, rope.tokens * rope.heads * rope.headDim));
  std::vector<int32_t> numbers;
  for (uint64_t axis = 0; axis < 4; ++axis) {
    for (uint64_t token = 0; token < rope.tokens; ++token) numbers.push_back(positions(axis, token));
  }
  opRun.set("positions", rawBytes(numbers));
  return opRun;
}

std::vector<double> rotatedBy(const std::shared_ptr<Device>& device, const RopeMulti& rope, const MultiRoPERun& opRun) {
  run(device, opRun.op());
  opRun.expectResults();
  return valuesOf(rope.dtype, opRun.now("rotated queries"));
}

// The kernel as documented: pairs (p, p + headDim / 2), rows = token * heads + head.
std::vector<double> documented(const RopeMulti& rope, Positions positions, const std::vector<double>& input) {
  std::vector<double> output = input;
  const auto& s = rope.sections;
  const uint64_t half = rope.headDim / 2;
  const bool isVision = rope.mode == RotaryEmbedding::Layout::vision;
  const uint64_t round = std::max<uint64_t>(isVision ? s[0] + s[1] : s[0] + s[1] + s[2] + s[3], 1);
  for (uint64_t row = 0; row < rope.tokens * rope.heads; ++row) {
    for (uint64_t p = 0; p < rope.ropeDim / 2; ++p) {
      const uint64_t sector = p % round;
      uint64_t axis = 3, index = p, denominator = rope.ropeDim;
      if (isVision) {
        axis = sector < s[0] ? 0 : 1;
        index = sector < s[0] ? sector : sector - s[0];
        denominator = half;
      } else if (rope.mode == RotaryEmbedding::Layout::mrope) {
        if (sector < s[0] + s[1] + s[2]) axis = sector < s[0] ? 0 : sector < s[0] + s[1] ? 1 : 2;
      } else if (sector < 3 * s[sector % 3]) {
        axis = sector % 3;
      }
      const double exponent = 2.0 * static_cast<double>(index) / static_cast<double>(denominator);
      const double theta = positions(axis, row / rope.heads) / std::pow(double{rope.base}, exponent);
      const double x0 = input[row * rope.headDim + p], x1 = input[row * rope.headDim + p + half];
      output[row * rope.headDim + p] = x0 * std::cos(theta) - x1 * std::sin(theta);
      output[row * rope.headDim + p + half] = x0 * std::sin(theta) + x1 * std::cos(theta);
    }
  }
  return output;
}

void expectClose(const std::vector<double>& got, const std::vector<double>& expected, double allowed) {
  EXPECT_EQ(got.size(), expected.size());
  for (size_t element = 0; element < expected.size(); ++element) {
    if (std::abs(got[element] - expected[element]) <= allowed) continue;
    return fail(
        __FILE__, __LINE__,
        fmt::format("element {}: got {}, expected {} within {}", element, got[element], expected[element], allowed));
  }
}

// Rotates on every device and compares with the documented formula. Planned again, the bytes are the same: there,
// parameters are kept from call to call or not, and here nothing is kept.
void expectDocumented(const RopeMulti& rope, double allowed, Positions positions = imagePosition) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    const MultiRoPERun opRun = runOf(device, rope, positions);
    const auto rotated = rotatedBy(device, rope, opRun);
    expectClose(rotated, documented(rope, positions, valuesOf(rope.dtype, opRun.before("queries"))), allowed);
    opRun.restore();
    EXPECT(rotatedBy(device, rope, opRun) == rotated);
  });
}

// One token of one head whose pairs are all (1, 0): results are cosines, then sines.
void expectCosinesAndSines(const RopeMulti& rope, const std::vector<double>& expected) {
  onEveryDevice([&](const std::shared_ptr<Device>& device) {
    MultiRoPERun opRun =
        runOf(device, rope, [](uint64_t axis, uint64_t) { return static_cast<int32_t>(3 + 2 * axis); });
    std::vector<float> ones(rope.headDim);
    std::fill_n(ones.begin(), rope.headDim / 2, 1.0f);
    opRun.set("queries", rawBytes(ones));
    expectClose(rotatedBy(device, rope, opRun), expected, 1e-5);
  });
}

}  // namespace

// Sections [2, 2, 1, 0] give the five pairs the axes 0, 1, 2, 0, 1; angles are 3, 5 * 10^-0.8, 7 * 10^-1.6,
// 3 * 10^-2.4 and 5 * 10^-3.2.
TEST(MultiRoPECoverage, ImropeByHand) {
  expectCosinesAndSines({RotaryEmbedding::Layout::imrope, 10, 10, 1, 1, 1e4f, {2, 2, 1, 0}},
                        {-0.989992497, 0.702105263, 0.984581331, 0.999928681, 0.999995024,  //
                         0.141120008, 0.712073170, 0.174927419, 0.011942931, 0.003154781});
}

// y turns the first section and x the second, each from the fastest frequency: angles 3, 0.03, 5 and 0.05.
TEST(MultiRoPECoverage, VisionByHand) {
  expectCosinesAndSines({RotaryEmbedding::Layout::vision, 8, 8, 1, 1, 1e4f, {2, 2, 0, 0}},
                        {-0.989992497, 0.999550034, 0.283662185, 0.998750260,  //
                         0.141120008, 0.029995500, -0.958924275, 0.049979169});
}

TEST(MultiRoPECoverage, RandomVectorsFollowTheFormula) {
  for (RotaryEmbedding::Layout mode : {RotaryEmbedding::Layout::mrope, RotaryEmbedding::Layout::imrope}) {
    for (const auto& sections : {std::array{4u, 6u, 6u, 0u}, {8u, 4u, 2u, 2u}, {2u, 1u, 1u, 1u}, {1u, 5u, 3u, 0u}}) {
      expectDocumented({mode, 32, 32, 3, 5, 1e4f, sections}, 1e-5);
      expectDocumented({mode, 32, 20, 3, 5, 1e4f, sections}, 1e-5);
    }
  }
  expectDocumented({RotaryEmbedding::Layout::vision, 72, 72, 2, 4, 1e4f, {18, 18, 0, 0}}, 1e-5);
}

// 64 of 256 elements turn: pairs (p, p + 128) for p < 32.
TEST(MultiRoPECoverage, QwenShapeKeepsItsTail) {
  expectDocumented({RotaryEmbedding::Layout::imrope, 256, 64, 2, 4, 1e7f, {11, 11, 10, 0}}, 1e-4);
}

TEST(MultiRoPECoverage, BF16FollowsTheFormula) {
  expectDocumented({RotaryEmbedding::Layout::imrope, 256, 64, 2, 4, 1e7f, {11, 11, 10, 0}, DType::bf16}, 5e-2);
  expectDocumented({RotaryEmbedding::Layout::mrope, 32, 32, 2, 4, 1e4f, {4, 6, 6, 0}, DType::bf16}, 5e-2);
}

// All four axes count as text does there. Equal positions of all tokens are no special case.
TEST(MultiRoPECoverage, EqualPositionsFollowTheFormula) {
  expectDocumented({RotaryEmbedding::Layout::imrope, 64, 64, 2, 6, 1e4f, {11, 11, 10, 0}}, 1e-5,
                   [](uint64_t, uint64_t token) { return static_cast<int32_t>(token + 7); });
  for (RotaryEmbedding::Layout mode :
       {RotaryEmbedding::Layout::mrope, RotaryEmbedding::Layout::imrope, RotaryEmbedding::Layout::vision}) {
    expectDocumented({mode, 32, 32, 2, 3, 1e4f, {8, 8, 0, 0}}, 1e-5, [](uint64_t, uint64_t) { return 42; });
  }
}

}  // namespace mnk::test
