// What the signs and the reach of the `turbo` codec do, measured on the shipped tables with a small codec in double.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "Harness/Check.hpp"
#include "Harness/Seeded.hpp"
#include "Harness/ShippedTables.hpp"

namespace mnk::test {

namespace {

using Row = std::vector<double>;

constexpr size_t kHeadDims[] = {32, 64, 128, 256, 512, 80, 96, 112, 192};  // in the order of their signs

bool isNegated(size_t headDim, size_t j) {
  size_t words = 0;
  for (const size_t* before = kHeadDims; *before != headDim; before++) words += (*before + 31) / 32;
  return shipped::kTurboSigns[words + j / 32] >> (j % 32) & 1;
}

// By the definition of the matrix: element (i, j) is -1 where i & j has an odd number of bits; between m blocks it is
// times those of m I - 2 J.
Row rotated(const Row& row) {
  Row r(row.size());
  const size_t block = row.size() & (~row.size() + 1), blocks = row.size() / block;
  for (size_t i = 0; i < r.size(); i++) {
    for (size_t j = 0; j < r.size(); j++) {
      const bool isMinus = (std::popcount(i % block & j % block) % 2 == 1) != isNegated(row.size(), j);
      const double across = blocks == 1 ? 1 : (i / block == j / block ? double(blocks) : 0) - 2;
      r[i] += across * (isMinus ? -row[j] : row[j]);
    }
  }
  return r;
}

// |r - r'|^2 / |r|^2 with the best of the candidates and the scale of least squares: the squared sine of the angle
// between a row and the levels of its codes.
double relativeError(const Row& r, const shipped::Codebook& codebook, int candidates) {
  double energy = 0, least = 1;
  for (const double x : r) energy += x * x;
  const double rms = std::sqrt(energy / double(r.size()));
  const double spacing = candidates == 1 ? 0 : shipped::kTurboReach[codebook.bits] / std::sqrt(candidates - 1);
  for (int m = 0; m < candidates; m++) {
    const double scale = rms * (1 + spacing * (m - candidates / 2));
    double dot = 0, length = 0;
    for (const double x : r) {
      const float u = float(std::abs(x) / scale);
      const auto above = std::lower_bound(codebook.boundaries.begin(), codebook.boundaries.end(), u);
      const double level = codebook.levels[size_t(above - codebook.boundaries.begin())];
      dot += std::abs(x) * level;
      length += level * level;
    }
    least = std::min(least, 1 - dot * dot / (length * energy));
  }
  return least;
}

// Near enough to normal. The seed is fixed: limits below are for these very rows.
class Normal {
 public:
  double next() {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += double(random_.next() >> 40) * 0x1p-24;
    return sum;
  }
  Row row(size_t size) {
    Row row(size);
    for (double& x : row) x = next();
    return row;
  }

 private:
  Seeded random_{7, 1};
};

struct NamedRow {
  std::string name;
  Row row;
};

// Rows with a structure that a rotation without signs would show: smooth, almost constant, and with few large elements.
std::vector<NamedRow> structuredRows(size_t size) {
  std::vector<NamedRow> rows;
  Normal normal;
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
    add(fmt::format("constant and {} noise", noise), [&](size_t) { return 1 + noise * normal.next(); });
  }
  double last = 0;
  add("neighbors alike", [&](size_t) { return last = 0.95 * last + 0.3 * normal.next(); });
  add("a large pair", [&](size_t j) { return (j % (size / 2) == 5 ? 20 : 1) * normal.next(); });
  add("4 large", [&](size_t j) { return normal.next() + (j % (size / 4) != 1 ? 0 : j < size / 2 ? 15 : -15); });
  add("16 above others", [&](size_t j) { return normal.next() + (j % (size / 16) == 0 ? 6 : 0); });
  return rows;
}

}  // namespace

// Least squares, 128 normal numbers: the error that a search leaves of the error without one.
TEST(CodecTables, TurboReachPays) {
  struct Gain {
    int bits;
    double by5, by17;
  };
  Normal normal;
  std::vector<Row> rows(400);
  for (Row& row : rows) row = normal.row(128);
  for (const Gain& gain : {Gain{2, 1, 1}, Gain{3, 0.97, 0.96}, Gain{4, 0.89, 0.87}, Gain{5, 0.86, 0.81},
                           Gain{6, 0.87, 0.80}, Gain{7, 0.88, 0.80}, Gain{8, 0.88, 0.80}}) {
    const Context context(fmt::format("{} bits", gain.bits));
    double without = 0, with5 = 0, with17 = 0;
    for (const Row& row : rows) {
      without += relativeError(row, shipped::turbo(gain.bits), 1);
      with5 += relativeError(row, shipped::turbo(gain.bits), 5);
      with17 += relativeError(row, shipped::turbo(gain.bits), 17);
    }
    EXPECT(with5 < gain.by5 * without);
    EXPECT(with17 < gain.by17 * without);
  }
  EXPECT_EQ(shipped::kTurboReach[0], 0.0f);
  EXPECT_EQ(shipped::kTurboReach[1], 0.0f);
}

TEST(CodecTables, TurboSignsLeaveNoStructure) {
  struct Expected {
    size_t headDim;
    double error;  // of normal rows, plain scale, 4 bits
  };
  for (const Expected& expected :
       {Expected{32, 0.0089267}, Expected{64, 0.0091711638}, Expected{128, 0.0093248616}, Expected{256, 0.0094100671},
        Expected{512, 0.0094548134}, Expected{80, 0.0092299609}, Expected{96, 0.0092711958},
        Expected{112, 0.0093016253}, Expected{192, 0.0093810592}}) {
    for (const NamedRow& named : structuredRows(expected.headDim)) {
      const Context context(fmt::format("{} elements, {}", expected.headDim, named.name));
      const Row r = rotated(named.row);
      const double error = relativeError(r, shipped::turbo(4), 1);
      EXPECT(error <= 3.5 * expected.error);
      EXPECT(relativeError(r, shipped::turbo(4), 5) <= error);
      if (named.name == "constant") EXPECT(error <= 0.02);
    }
  }
}

TEST(CodecTables, TurboSignsAreNotAlike) {
  const std::set<uint32_t> different(std::begin(shipped::kTurboSigns), std::end(shipped::kTurboSigns));
  EXPECT_EQ(different.size(), std::size(shipped::kTurboSigns));
  for (const size_t headDim : kHeadDims) {
    const Context context(fmt::format("{} elements", headDim));
    int negated = 0;
    for (size_t j = 0; j < headDim; j++) negated += isNegated(headDim, j);
    EXPECT(std::abs(2 * negated - int(headDim)) <= 4 * std::sqrt(double(headDim)));
  }
}

}  // namespace mnk::test
