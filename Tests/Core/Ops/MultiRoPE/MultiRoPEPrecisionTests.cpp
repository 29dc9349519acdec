// How good the angles are, from position 1 to the last one there is.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

#include "Harness/Check.hpp"
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

std::vector<float> floatsOf(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
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
  const double largest = errorsOf(floatsOf(opRun.now("rotated queries")), opRun.expected().queries).largest;
  if (largest <= 0x1p-23) return;
  fail(__FILE__, __LINE__, fmt::format("{}: largest error {:.3g}, allowed {:.3g}", name, largest, 0x1p-23));
}

// Every f32 result carries roundings of its own: of cosine, sine, two products and a sum. They leave an NMSE of some
// 2e-15, wherever the position. Far beyond a million the double in which frequencies are counted begins to show: an
// angle is wrong by a few 2^-53 of the position.
double allowedNMSE(double position) {
  return 1e-14 + std::pow(position * 0x1p-53, 2);
}

// Rows of the table, by position, for all bases.
using Table = std::array<std::string, std::size(kPositions)>;

void expectPrecision(const std::shared_ptr<Device>& device, double base, Table& table) {
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
  const auto got = floatsOf(opRun.now("rotated queries"));
  const auto exact = opRun.expected().queries;
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
    table[token] +=
        fmt::format(" | {:7.1e} {:7.1e}, {:7.1e} {:7.1e}", ours.nmse, ours.largest, usual.nmse, usual.largest);
  }
}

}  // namespace

TEST(MultiRoPEPrecision, FarPositionsAreAsGoodAsNearOnes) {
  for (const DeviceUnderTest& under : devicesUnderTest()) {
    const Context context(under.name);
    Table table;
    for (double base : kBases) expectPrecision(under.device, base, table);
    if (&under != &devicesUnderTest().front()) continue;
    std::string lines =
        "NMSE and largest error of MultiRoPE, then of the usual formula in float, by position and base\n";
    lines += fmt::format("{:>10}", "");
    for (double base : kBases) lines += fmt::format(" | {:<32}", base);
    for (size_t row = 0; row < table.size(); ++row) lines += fmt::format("\n{:>10}{}", kPositions[row], table[row]);
    std::puts(lines.c_str());
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
