// The levels, boundaries and fixed signs of the codecs, judged by integrals over the normal distribution from the
// numbers that ship. Nothing here comes from the program that made them.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <source_location>
#include <string>
#include <string_view>

#include "Harness/Check.hpp"
#include "Harness/ShippedTables.hpp"

namespace mnk::test {

namespace {

// What a normal number has in one cell: probability, first moment, and squared distance from the level.
struct Cell {
  long double mass = 0, moment = 0, error = 0;
};

Cell integrate(const shipped::Codebook& codebook, size_t i) {
  const long double low = i == 0 ? 0 : codebook.boundaries[i - 1];
  // Beyond 14 there is less than 1e-44.
  const bool isLast = i + 1 == codebook.levels.size();
  const long double high = isLast ? 14 : codebook.boundaries[i], level = codebook.levels[i];
  const int intervals = isLast ? 4096 : 256;
  Cell cell;
  for (int k = 0; k <= intervals; k++) {  // Simpson's rule
    const long double x = low + (high - low) * k / intervals;
    const long double weight = (k == 0 || k == intervals ? 1 : k % 2 ? 4 : 2) * (high - low) / intervals / 3;
    const long double mass = weight * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L));
    cell.mass += mass;
    cell.moment += mass * x;
    cell.error += mass * (x - level) * (x - level);
  }
  return cell;
}

double distortion(const shipped::Codebook& codebook) {
  long double error = 0;
  for (size_t i = 0; i < codebook.levels.size(); i++) error += 2 * integrate(codebook, i).error;
  return double(error);
}

// Levels of the best quantizer are the means of their cells.
double farthestFromMean(const shipped::Codebook& codebook) {
  long double farthest = 0;
  for (size_t i = 0; i < codebook.levels.size(); i++) {
    const Cell cell = integrate(codebook, i);
    farthest = std::max(farthest, std::abs(cell.moment / cell.mass - codebook.levels[i]));
  }
  return double(farthest);
}

// FNV-1a, word by word: shows a wrong last digit, which no integral does.
uint64_t checksum(std::span<const float> values) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const float x : values) sum = (sum ^ std::bit_cast<uint32_t>(x)) * 0x100000001b3u;
  return sum;
}

void expectRising(std::span<const float> values) {
  EXPECT(values.front() > 0);
  EXPECT(std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end());
}

void expectNear(double got, double expected, double tolerance,
                std::source_location where = std::source_location::current()) {
  if (!(std::abs(got / expected - 1) <= tolerance)) {
    fail(where.file_name(), int(where.line()),
         fmt::format("got {:.10g}, expected {:.10g} within {}", got, expected, tolerance));
  }
}

// The best quantizer by bits: its distortion and its levels next to zero and farthest from it. Levels that are
// off together, as an unfinished iteration leaves them, show there first.
struct Optimum {
  double distortion, innermost, outermost;
};
constexpr Optimum kOptimum[] = {{},
                                {},
                                {0.11748185, 0.45278003, 1.5104176},
                                {0.034547761, 0.24509418, 2.1519457},
                                {0.0095010080, 0.12839503, 2.7325896},
                                {0.0025046684, 0.06588966, 3.2607325},
                                {6.4423967e-4, 0.033409506, 3.7441013},
                                {1.6347823e-4, 0.016828169, 4.1896942},
                                {4.1185083e-5, 0.0084461932, 4.6035356}};

}  // namespace

TEST(CodecTables, TurboLevelsAreTheBest) {
  for (int bits = 2; bits <= 8; bits++) {
    const Context context(fmt::format("{} bits", bits));
    expectNear(distortion(shipped::turbo(bits)), kOptimum[bits].distortion, 1e-6);
    expectNear(shipped::turbo(bits).levels.front(), kOptimum[bits].innermost, 2e-7);
    expectNear(shipped::turbo(bits).levels.back(), kOptimum[bits].outermost, 2e-7);
    EXPECT(farthestFromMean(shipped::turbo(bits)) <= 3e-7);
    expectRising(shipped::turbo(bits).levels);
  }
}

// The numbers of caches that exist: distortions were computed from the format's own text.
TEST(CodecTables, Mlx1LevelsAreThoseOfTheFormat) {
  struct Known {
    int bits;
    double distortion;
  };
  for (const Known& known :
       {Known{4, 0.00950100801}, Known{5, 0.00250466838}, Known{6, 6.48648903e-4}, Known{8, 6.27427742e-5}}) {
    const Context context(fmt::format("{} bits", known.bits));
    const auto [_, levels, boundaries] = shipped::mlx1(known.bits);
    expectNear(distortion(shipped::mlx1(known.bits)), known.distortion, 3e-9);
    expectRising(levels);
    expectRising(boundaries);
    // Midpoints, but for the seventh decimal, which both were rounded to before they became floats.
    for (size_t i = 0; i + 1 < levels.size(); i++) {
      const double midpoint = (double(levels[i]) + double(levels[i + 1])) / 2;
      EXPECT(std::abs(midpoint - double(boundaries[i])) <= 1e-7 + 0x1p-23 * midpoint);
    }
    EXPECT_EQ(boundaries.back(), FLT_MAX);
  }
  expectNear(distortion(shipped::mlx1(4)), kOptimum[4].distortion, 1e-6);
  EXPECT(farthestFromMean(shipped::mlx1(4)) <= 3e-7);
  EXPECT_EQ(checksum(shipped::kMlx1Codebooks), 0x3f2ec7c61ac7a94cu);
  EXPECT_EQ(checksum(shipped::kMlx1Boundaries), 0xd6113f10d5e3bb90u);
}

TEST(CodecTables, Mlx1SignsAreThoseOfTheFormat) {
  // Bytes in order, the first element of each in its lowest bit.
  constexpr std::string_view text =
      "a73b91f46dc2580eb37f24d68945ea1c63afd852970be13d76c419fe4a852cdb"
      "d34ea8179c5be63172b90df5438a6ec7582f94e1b63d0a7cc561d84fa3971e85";
  int ones = 0, onesOfHalf = 0;
  for (size_t j = 0; j < 512; j++) {
    const uint32_t bit = shipped::kMlx1Signs[j / 32] >> (j % 32) & 1;
    const int byte = std::stoi(std::string(text.substr(j / 8 * 2, 2)), nullptr, 16);
    EXPECT_EQ(bit, uint32_t(byte >> (j % 8) & 1));
    ones += int(bit);
    if (j == 255) onesOfHalf = ones;
  }
  EXPECT_EQ(onesOfHalf, 132);
  EXPECT_EQ(ones, 263);
}

}  // namespace mnk::test
