// The constants of the codecs as they ship: checksums of all, and what codebooks lose of normal numbers, by integrals.
// Nothing here comes from the program that made them. KVCacheQuantizeDistortion shows what they do to rows.
#include <bit>
#include <cmath>

#include "Common/KVCodecTypes.h"
#include "Harness/Check.hpp"
#include "Harness/ShippedTables.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

namespace {

// The mean squared distance of a normal number from its level, by Simpson's rule in each cell.
double distortion(const shipped::Codebook& codebook) {
  long double error = 0;
  for (size_t i = 0; i < codebook.levels.size(); i++) {
    const long double low = i == 0 ? 0 : codebook.boundaries[i - 1];
    // Beyond 14 there is less than 1e-44.
    const bool isLast = i + 1 == codebook.levels.size();
    const long double high = isLast ? 14 : codebook.boundaries[i], level = codebook.levels[i];
    const int intervals = isLast ? 4096 : 256;
    for (int k = 0; k <= intervals; k++) {
      const long double x = low + (high - low) * k / intervals;
      const long double weight = (k == 0 || k == intervals ? 1 : k % 2 ? 4 : 2) * (high - low) / intervals / 3;
      error += 2 * weight * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L)) * (x - level) * (x - level);
    }
  }
  return double(error);
}

// FNV-1a, word by word: shows a wrong last digit, which no integral does.
uint64_t checksum(const auto& values) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const auto x : values) sum = (sum ^ std::bit_cast<uint32_t>(x)) * 0x100000001b3u;
  return sum;
}

double nearestHalf(double x) {
  return valueOf(DType::f16, nearestBits(DType::f16, x));
}

}  // namespace

TEST(CodecTables, LevelsLoseWhatTheBestOnesLose) {
  struct Known {
    shipped::Codebook codebook;
    double distortion, tolerance;
  };
  // Of turbo, 2 and 4 bits have the best levels, and others the best polynomial with terms of degree 1, 3 and 5,
  // without rounding. Those of mlx1 were computed from the format's own text.
  for (const auto& [codebook, known, tolerance] : {Known{shipped::turbo(2), 0.11748185, 1e-6},
                                                   {shipped::turbo(3), 0.034548121, 1e-3},
                                                   {shipped::turbo(4), 0.0095010080, 1e-6},
                                                   {shipped::turbo(5), 0.0025339002, 1e-3},
                                                   {shipped::turbo(6), 6.6493334e-4, 1e-3},
                                                   {shipped::turbo(7), 1.7328449e-4, 1e-3},
                                                   {shipped::turbo(8), 4.4951535e-5, 1e-3},
                                                   {shipped::mlx1(4), 0.00950100801, 3e-9},
                                                   {shipped::mlx1(5), 0.00250466838, 3e-9},
                                                   {shipped::mlx1(6), 6.48648903e-4, 3e-9},
                                                   {shipped::mlx1(8), 6.27427742e-5, 3e-9}}) {
    const double got = distortion(codebook);
    if (std::abs(got / known - 1) <= tolerance) continue;
    fail(__FILE__, __LINE__, fmt::format("{} bits: got {:.10g}, expected {:.10g}", codebook.bits, got, known));
  }
}

// Kernels that compute levels and kernels that look them up read the same numbers.
TEST(CodecTables, TurboLevelsAreWhatHalvesCompute) {
  for (int bits = 2; bits <= 8; bits++) {
    const Context context(fmt::format("{} bits", bits));
    const auto curve = std::span(shipped::kTurboCurves).subspan(3 * size_t(bits - 2), 3);
    EXPECT_EQ(curve[2] != 0, kTurboHasCurve(bits));
    if (!kTurboHasCurve(bits)) continue;
    for (const double halves : curve.first(2)) EXPECT_EQ(halves, nearestHalf(halves));
    const auto levels = shipped::turbo(bits).levels;
    for (size_t i = 0; i < levels.size(); i++) {
      const double t = double(2 * i + 1) / double(2 * levels.size());
      const double u = nearestHalf(t * t + double(curve[0])), v = nearestHalf(u * u + double(curve[1]));
      EXPECT_EQ(double(levels[i]), double(curve[2]) * nearestHalf(v * t));
    }
  }
}

// Codes that are stored keep their meaning. Bytes of the format pin the signs of mlx1, too
// (KVCacheQuantizeGolden.MakesTheGoldenBytes).
TEST(CodecTables, ConstantsNeverChange) {
  EXPECT_EQ(checksum(shipped::kTurboCodebooks), 0x79d54e36da32125eu);
  EXPECT_EQ(checksum(shipped::kTurboSigns), 0x8b2ceba8abf4c6dcu);
  EXPECT_EQ(checksum(shipped::kTurboReach), 0xe2ee672f9b65a16cu);
  EXPECT_EQ(checksum(shipped::kMlx1Codebooks), 0x3f2ec7c61ac7a94cu);
  EXPECT_EQ(checksum(shipped::kMlx1Boundaries), 0xd6113f10d5e3bb90u);
}

}  // namespace mnk::test
