// How good the angles are, from position 1 to the last one there is.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "MultiRoPERun.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kHeadDim = 128;
constexpr uint64_t kPairs = kHeadDim / 2;
constexpr double kBases[] = {1e4, 1e6, 5e6, 1e7};
constexpr int64_t kPositions[] = {1, 1000, 4096, 32768, 131071, 262144, 1000000, 2147483647, 2147483648, 4294967295};

// Errors of one vector against exact values.
struct Errors {
  double nmse = 0;  // sum of squares of the errors, by the sum of squares of the values
  double largest = 0;
};

Errors errorsOf(std::span<const float> got, std::span<const TurnedElement> exact) {
  double squares = 0, sum = 0, largest = 0;
  for (size_t element = 0; element < got.size(); ++element) {
    const double error = static_cast<double>(got[element]) - exact[element].value;
    squares += error * error;
    sum += exact[element].value * exact[element].value;
    largest = std::max(largest, std::abs(error));
  }
  return {squares / sum, largest};
}

// What most programs compute: all in float.
std::array<float, kHeadDim> usualFormula(std::span<const float> x, float position, float base) {
  std::array<float, kHeadDim> result;
  for (uint64_t p = 0; p < kPairs; ++p) {
    const float theta = position * std::pow(base, -2.0f * static_cast<float>(p) / static_cast<float>(kHeadDim));
    result[p] = x[p] * std::cos(theta) - x[p + kPairs] * std::sin(theta);
    result[p + kPairs] = x[p] * std::sin(theta) + x[p + kPairs] * std::cos(theta);
  }
  return result;
}

// One head and one token for each position, given as a u32 tensor.
MultiRoPERun rotatedBy(const std::shared_ptr<Device>& device, const RotaryEmbedding& rotary, uint64_t headDim,
                       const std::vector<uint32_t>& positions, const std::vector<float>& queries) {
  Seeded random;
  MultiRoPERun opRun(device,
                     {.name = "precision",
                      .placing = RopePlacing::apart,
                      .tokens = positions.size(),
                      .heads = 1,
                      .keyHeads = 0,
                      .headDim = headDim,
                      .rotary = rotary,
                      .positions = RopeNumbers::u32},
                     random);
  opRun.set("queries", rawBytes(queries));
  opRun.set("positions", rawBytes(positions));
  run(device, opRun.op());
  return opRun;
}

// Elements (1, 0) become (cosine, sine). 2^-23 is the error that Rotary.h promises.
void expectRotations(std::string_view name, const std::shared_ptr<Device>& device, const RotaryEmbedding& rotary,
                     const std::vector<uint32_t>& positions) {
  std::vector<float> queries(2 * positions.size());
  for (size_t token = 0; token < positions.size(); ++token) queries[2 * token] = 1;
  const MultiRoPERun opRun = rotatedBy(device, rotary, 2, positions, queries);
  const auto exact = reference(opRun.op(), opRun.memory().before).queries;
  const double largest = errorsOf(numbersIn<float>(opRun.now("rotated queries")), exact).largest;
  if (largest <= 0x1p-23) return;
  fail(__FILE__, __LINE__, fmt::format("{}: largest error {:.3g}, allowed {:.3g}", name, largest, 0x1p-23));
}

// Every f32 result carries roundings of its own: of cosine, sine, two products and a sum. They leave an NMSE of some
// 2e-15, wherever the position. Far beyond a million the double in which frequencies are counted begins to show: an
// angle is wrong by a few 2^-53 of the position.
double allowedNMSE(double position) {
  return 1e-14 + std::pow(position * 0x1p-53, 2);
}

void expectPrecision(const std::shared_ptr<Device>& device, double base, bool prints) {
  Seeded random;
  std::vector<float> queries;
  std::vector<uint32_t> positions;
  for (int64_t position : kPositions) {
    positions.push_back(static_cast<uint32_t>(position));
    for (uint64_t element = 0; element < kHeadDim; ++element) {
      queries.push_back(static_cast<float>(random.below(1 << 24)) * 0x1p-23f - 1);
    }
  }
  const MultiRoPERun opRun = rotatedBy(device, {.base = base}, kHeadDim, positions, queries);
  const auto got = numbersIn<float>(opRun.now("rotated queries"));
  const auto exact = reference(opRun.op(), opRun.memory().before).queries;
  for (size_t token = 0; token < positions.size(); ++token) {
    const uint32_t position = positions[token];
    const auto part = [&](const auto& list) { return std::span(list).subspan(token * kHeadDim, kHeadDim); };
    const auto inFloat = usualFormula(part(queries), static_cast<float>(position), static_cast<float>(base));
    const Errors ours = errorsOf(part(got), part(exact)), usual = errorsOf(inFloat, part(exact));
    if (!(ours.nmse <= allowedNMSE(position))) {
      fail(__FILE__, __LINE__,
           fmt::format("position {}, base {}: NMSE {:.3g}, allowed {:.3g}", position, base, ours.nmse,
                       allowedNMSE(position)));
    }
    // Data that the usual formula could pass with would show nothing.
    if (position == 1000000) EXPECT(usual.nmse > 1e-7);
    if (!prints) continue;
    std::printf("position %10u, base %8.0f: %7.1e %7.1e; in float %7.1e %7.1e\n", position, base, ours.nmse,
                ours.largest, usual.nmse, usual.largest);
  }
}

}  // namespace

// Prints the NMSE and the largest error of MultiRoPE, and of the usual formula.
TEST(MultiRoPEPrecision, FarPositionsAreAsGoodAsNearOnes) {
  for (const DeviceUnderTest& under : devicesUnderTest()) {
    const Context context(under.name);
    for (double base : kBases) expectPrecision(under.device, base, &under == &devicesUnderTest().front());
  }
}

// A circle of 4096 positions has them on every quarter and eighth of a turn.
TEST(MultiRoPEPrecision, CosineAndSineAreGoodAllAround) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const double circle = 2 * std::numbers::pi / 4096;
    Seeded random;
    std::vector<uint32_t> around, anywhere;
    for (uint32_t position = 0; position < 4096; ++position) {
      around.push_back(position);
      anywhere.push_back(static_cast<uint32_t>(random.below(1 << 24)));
    }
    expectRotations("a circle", device, {.scale = circle}, around);
    expectRotations("a part of it", device, {.scale = circle / 3.7}, around);
    expectRotations("anywhere", device, {}, anywhere);
  });
}

}  // namespace mnk::test
