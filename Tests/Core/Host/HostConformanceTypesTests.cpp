// Results of kernels in Tests/Shaders/ConformanceTypes.metal, compared with values computed by hand or by the C
// library.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST(HostConformance, SmallFloatsRoundEveryOperation) {
  onEveryHost([](const auto& device) {
    std::vector<float> in = {2048,  256,     1, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f,
                             65520, 0x1p-24f};
    std::vector<float> out(26, -1);
    REQUIRE(runOn(
        device,
        {.function = "smallFloats", .grid = threads({1, 1, 1}, {1, 1, 1}), .buffers = {bytesOf(in), bytesOf(out)}}));
    expectAll(out,
              {2048,
               256,
               2048,
               4096,
               256,
               1,
               1 + 0x1p-9f,
               1,
               1 + 0x1p-6f,
               kInfinity,
               0x1p-24f,
               0x1.554p-2f,
               0x1.56p-2f,
               0x1.478p-7f,
               2047,
               2048.25f,
               15360,
               16256,
               1,
               0x1.6ap+0f,
               1,
               -1 + 2048 + 1 + 1,
               1,
               0x1.004p+0f,
               -0x1.004p+0f,
               1},
              "value");
  });
}

TEST(HostConformance, Vectors) {
  onEveryHost([](const auto& device) {
    std::vector<float> in = {1, 2, 3, 4}, out(20, -1);
    REQUIRE(
        runOn(device,
              {.function = "vectors", .grid = threads({1, 1, 1}, {1, 1, 1}), .buffers = {bytesOf(in), bytesOf(out)}}));
    expectAll(out, {14, 321, 2332,       3,  9, 753, -27, 64, 1, -4, 204, 16 + 1200 + 80000 + 6000000,
                    1,  18,  1073741824, 12, 5, 1,   9,   6},
              "value");
  });
}

TEST(HostConformance, PackedVectorsHaveNoPadding) {
  struct Record {
    float position[3];
    float weight;
    _Float16 pair[2];
    uint32_t indices[2];
  };
  static_assert(sizeof(Record) == 28);
  onEveryHost([](const auto& device) {
    std::vector<Record> records;
    for (int i = 0; i < 5; ++i) {
      const float x = static_cast<float>(i);
      records.push_back({{x, x + 1, x + 2}, 2, {_Float16(x), _Float16(0.5f)}, {uint32_t(i), 3}});
    }
    std::vector<float> out(15, -1), sums(5, -1);
    REQUIRE(runOn(device, {.function = "packedVectors",
                           .grid = threads({5, 1, 1}, {4, 1, 1}),
                           .buffers = {bytesOf(records), bytesOf(out), bytesOf(sums)}}));
    for (int i = 0; i < 5; ++i) {
      const float x = static_cast<float>(i);
      EXPECT_EQ(out[i * 3], 2 * x);
      EXPECT_EQ(out[i * 3 + 2], 2 * x + 4);
      EXPECT_EQ(sums[i], x + 0.5f + 10 * x + 3 + (x + 1) + (x + 3));
    }
  });
}

TEST(HostConformance, MathFunctions) {
  onEveryHost([](const auto& device) {
    const double x = 0.75, y = -2.5, pi = 3.14159265358979323846;
    std::vector<float> in = {0.75f, -2.5f}, out(30, -1);
    REQUIRE(runOn(
        device,
        {.function = "mathFunctions", .grid = threads({1, 1, 1}, {1, 1, 1}), .buffers = {bytesOf(in), bytesOf(out)}}));
    const std::vector<double> expected = {
        std::exp(x),      std::exp2(x), std::pow(10, x), std::log(x),   std::log2(x),     std::log10(x),
        std::sin(x),      std::cos(x),  std::tan(x),     std::asin(x),  std::acos(x),     std::atan(x),
        std::atan2(x, y), std::sinh(x), std::cosh(x),    std::tanh(x),  std::pow(x, y),   std::sqrt(x),
        1 / std::sqrt(x), std::exp(y),  std::exp2(y),    std::sin(y),   std::sin(pi * x), std::cos(pi * x),
        std::sin(x),      std::cos(x),  std::exp(y),     std::asinh(x), std::acosh(-y),   std::atanh(x)};
    for (size_t i = 0; i < expected.size(); ++i) {
      const Context context(fmt::format("value {}: got {}, expected {}", i, out[i], expected[i]));
      EXPECT(std::abs(out[i] - expected[i]) <= 1e-6 * std::abs(expected[i]));
    }
  });
}

TEST(HostConformance, CommonAndGeometricFunctions) {
  onEveryHost([](const auto& device) {
    std::vector<float> in = {0.75f, -2.5f}, out(39, -1);
    REQUIRE(runOn(
        device,
        {.function = "exactFunctions", .grid = threads({1, 1, 1}, {1, 1, 1}), .buffers = {bytesOf(in), bytesOf(out)}}));
    expectAll(out, {-3,   -2,      -2, -3, -2,    0.5f,    2.5f, -0.25f,   -0.75f, -2.5f,           0.75f, 3.25f,
                    6,    -0.875f, -1, 0,  0.75f, -0.875f, 0,    0.84375f, -1,     -2.5f,           9,     0.75f,
                    2,    1,       24, 0,  1,     0.75f,   2,    3,        9,      std::sqrt(5.0f), -2,    1,
                    0.8f, -2,      1},
              "value");
  });
}

TEST(HostConformance, IntegerFunctions) {
  onEveryHost([](const auto& device) {
    std::vector<uint32_t> in = {0x00f0a001, static_cast<uint32_t>(-5)}, out(21, 7);
    REQUIRE(runOn(device, {.function = "integerFunctions",
                           .grid = threads({1, 1, 1}, {1, 1, 1}),
                           .buffers = {bytesOf(in), bytesOf(out)}}));
    const uint32_t minusOne = ~0u;
    expectAll(out,
              {7,
               8,
               4,
               0x80050f00,
               0xf0a00100,
               0x0a,
               0x00f0aff1,
               0xf0,
               minusOne,
               5,
               12,
               static_cast<uint32_t>(-5) ^ 0x00f0a001 ^ 4,
               255,
               0,
               static_cast<uint32_t>(-32768),
               7,
               8,
               static_cast<uint32_t>(-5),
               32 + 32 + 15,
               3,
               17},
              "value");
  });
}
