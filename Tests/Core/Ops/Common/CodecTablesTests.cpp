// The constants of the codecs as they ship: levels and boundaries judged by integrals over the normal distribution,
// signs and the reach of a search by what they do to rows. Nothing here comes from the program that made them.
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <source_location>
#include <string>
#include <string_view>

#include "Common/KVCodecTypes.h"
#include "Harness/Check.hpp"
#include "Harness/ShippedTables.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/Common/TurboSigns.hpp"

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
uint64_t checksum(const auto& values) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const auto x : values) sum = (sum ^ std::bit_cast<uint32_t>(x)) * 0x100000001b3u;
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
  int bits;
  double distortion, innermost, outermost;
};
constexpr Optimum kOptima[] = {{2, 0.11748185, 0.45278003, 1.5104176}, {4, 0.0095010080, 0.12839503, 2.7325896}};

double nearestHalf(double x) {
  return valueOf(DType::f16, nearestBits(DType::f16, x));
}

using Row = std::vector<double>;

// |r - r'|^2 / |r|^2 with the best of the candidates and the scale of least squares: the squared sine of the angle
// between a row and the levels of its codes.
double relativeError(const Row& rotatedRow, uint32_t bits, uint32_t candidates) {
  const VectorCoding coding{.codec = {.bits = bits}, .candidates = candidates};
  return 1 - cosineSquared(coding.codec, rotatedRow, encodedRotated(coding, rotatedRow).codes);
}

struct NamedRow {
  std::string name;
  Row row;
};

// Rows with a structure that a rotation without signs would show: smooth, almost constant, and with few large elements.
std::vector<NamedRow> structuredRows(size_t size) {
  std::vector<NamedRow> rows;
  Seeded random(7, 1);
  const std::vector<float> normals = normalVector(random, 8 * size);
  size_t next = 0;
  const auto normal = [&] { return double{normals[next++]}; };
  const auto add = [&](std::string name, const std::function<double(size_t)>& element) {
    NamedRow& added = rows.emplace_back(NamedRow{std::move(name), Row(size)});
    for (size_t j = 0; j < size; j++) added.row[j] = element(j);
  };
  const double n = double(size);
  add("constant", [](size_t) { return 1.0; });
  add("alternating", [](size_t j) { return j % 2 ? -1.0 : 1.0; });
  add("half and half", [&](size_t j) { return j < size / 2 ? 1.0 : -1.0; });
  add("first quarter", [&](size_t j) { return j < size / 4 ? 1.0 : 0.0; });
  add("ramp", [](size_t j) { return double(j); });
  add("ramp around zero", [&](size_t j) { return 2 * double(j) + 1 - n; });
  add("two-hot", [&](size_t j) { return j == 3 || j == size / 2 ? 1.0 : 0.0; });
  for (const int waves : {1, 3, 8}) {
    add(fmt::format("{} waves", waves), [&](size_t j) { return std::sin(2 * M_PI * waves * double(j) / n + 0.5); });
  }
  for (const double share : {0.05, 0.1, 0.3}) {
    add(fmt::format("decay within {}", share), [&](size_t j) { return std::exp(-double(j) / (share * n)); });
  }
  for (const double noise : {0.1, 0.3, 1.0, 3.0}) {
    add(fmt::format("constant and {} noise", noise), [&](size_t) { return 1 + noise * normal(); });
  }
  double last = 0;
  add("neighbors alike", [&](size_t) { return last = 0.95 * last + 0.3 * normal(); });
  add("a large pair", [&](size_t j) { return (j % (size / 2) == 5 ? 20 : 1) * normal(); });
  add("4 large", [&](size_t j) { return normal() + (j % (size / 4) != 1 ? 0 : j < size / 2 ? 15 : -15); });
  add("16 above others", [&](size_t j) { return normal() + (j % (size / 16) == 0 ? 6 : 0); });
  return rows;
}

}  // namespace

TEST(CodecTables, TurboLevelsAreTheBest) {
  for (const auto& [bits, least, innermost, outermost] : kOptima) {
    const Context context(fmt::format("{} bits", bits));
    expectNear(distortion(shipped::turbo(bits)), least, 1e-6);
    expectNear(shipped::turbo(bits).levels.front(), innermost, 2e-7);
    expectNear(shipped::turbo(bits).levels.back(), outermost, 2e-7);
    EXPECT(farthestFromMean(shipped::turbo(bits)) <= 3e-7);
    expectRising(shipped::turbo(bits).levels);
  }
}

TEST(CodecTables, TurboCurvesAreTheBest) {
  struct Best {
    int bits;
    double distortion;  // of the best polynomial with terms of degree 1, 3 and 5, without rounding
    double excess;      // over the best levels
  };
  for (const Best& best : {Best{3, 0.034548121, 1.00001}, Best{5, 0.0025339002, 1.0116}, Best{6, 6.6493334e-4, 1.0320},
                           Best{7, 1.7328449e-4, 1.0600}, Best{8, 4.4951535e-5, 1.0921}}) {
    const Context context(fmt::format("{} bits", best.bits));
    const double got = distortion(shipped::turbo(best.bits));
    expectNear(got, best.distortion, 1e-3);
    const double least[] = {0.034547761, 0, 0.0025046684, 6.4423967e-4, 1.6347823e-4, 4.1185083e-5};
    EXPECT(got <= best.excess * least[best.bits - 3]);
    expectRising(shipped::turbo(best.bits).levels);
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
  expectNear(distortion(shipped::mlx1(4)), kOptima[1].distortion, 1e-6);
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

// Codes that are stored keep their meaning.
TEST(CodecTables, TurboConstantsNeverChange) {
  EXPECT_EQ(checksum(shipped::kTurboCodebooks), 0x79d54e36da32125eu);
  EXPECT_EQ(checksum(shipped::kTurboSigns), 0x8b2ceba8abf4c6dcu);
  EXPECT_EQ(checksum(shipped::kTurboReach), 0xe2ee672f9b65a16cu);
}

// Least squares, 128 normal numbers: the error that a search leaves of the error without one.
TEST(CodecTables, TurboReachPays) {
  struct Gain {
    uint32_t bits;
    double by5, by17;
  };
  Seeded random(7, 1);
  std::vector<Row> rows(400);
  for (Row& row : rows) row = widened(normalVector(random, 128));
  for (const Gain& gain : {Gain{2, 1, 1}, Gain{3, 0.97, 0.96}, Gain{4, 0.89, 0.87}, Gain{5, 0.86, 0.81},
                           Gain{6, 0.87, 0.80}, Gain{7, 0.88, 0.80}, Gain{8, 0.88, 0.80}}) {
    const Context context(fmt::format("{} bits", gain.bits));
    double without = 0, with5 = 0, with17 = 0;
    for (const Row& row : rows) {
      without += relativeError(row, gain.bits, 1);
      with5 += relativeError(row, gain.bits, 5);
      with17 += relativeError(row, gain.bits, 17);
    }
    EXPECT(with5 < gain.by5 * without);
    EXPECT(with17 < gain.by17 * without);
  }
}

TEST(CodecTables, TurboSignsLeaveNoStructure) {
  for (const uint64_t headDim : kTurboHeadDims) {
    for (const NamedRow& named : structuredRows(headDim)) {
      const Context context(fmt::format("{} elements, {}", headDim, named.name));
      const Row row = rotated(KVCodec::Name::turbo, named.row);
      const double error = relativeError(row, 4, 1);
      EXPECT(error <= 3.5 * 0.0089);  // normal rows have 0.0089 to 0.0095
      EXPECT(relativeError(row, 4, 5) <= error);
      if (named.name == "constant") EXPECT(error <= 0.02);
    }
  }
}

TEST(CodecTables, TurboSignsAreNotAlike) {
  const std::set<uint32_t> different(std::begin(shipped::kTurboSigns), std::end(shipped::kTurboSigns));
  EXPECT_EQ(different.size(), std::size(shipped::kTurboSigns));
  for (const uint64_t headDim : kTurboHeadDims) {
    const Context context(fmt::format("{} elements", headDim));
    const std::vector<double> signs = signsOf(KVCodec::Name::turbo, headDim);
    EXPECT(std::abs(std::accumulate(signs.begin(), signs.end(), 0.0)) <= 4 * std::sqrt(double(headDim)));
  }
}

}  // namespace mnk::test
