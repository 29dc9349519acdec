// Every number gets the code of its cell, whatever the polynomial guesses: how many boundaries lie below it.
#include <algorithm>
#include <cmath>

#include "Common/FunctionConstants.h"
#include "Harness/Seeded.hpp"
#include "Harness/ShippedTables.hpp"
#include "Host/HostTestSupport.hpp"

namespace mnk::test {

namespace {

struct Params {
  uint32_t numbers;
  uint32_t factors;
};

// Zero, and all boundaries of both halves.
std::vector<float> boundariesOf(const shipped::Codebook& codebook) {
  std::vector<float> all{0};
  for (size_t i = 0; i + 1 < codebook.boundaries.size(); ++i) {
    all.push_back(codebook.boundaries[i]);
    all.push_back(-codebook.boundaries[i]);
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Numbers whose product with a factor lies on a boundary, next to one, anywhere between them, or beyond all.
std::vector<float> numbersFor(const std::vector<float>& boundaries, std::span<const float> factors, Seeded& random) {
  std::vector<float> numbers{0.0f, -0.0f, 1e-30f, -1e-30f, 1e6f, -1e6f, 1e30f, -1e30f};
  for (const float factor : factors) {
    for (const float boundary : boundaries) {
      float x = boundary / factor;
      for (int i = 0; i < 3; ++i) x = std::nextafter(x, -INFINITY);
      for (int i = 0; i < 7; ++i, x = std::nextafter(x, INFINITY)) numbers.push_back(x);
    }
  }
  for (int i = 0; i < 4000; ++i) {
    const double unit = static_cast<double>(random.below(1 << 24)) / (1 << 23) - 1;
    numbers.push_back(static_cast<float>(unit * 2.2 * double(boundaries.back())));
  }
  return numbers;
}

// An entry of a codebook, by its code.
float entryOf(const shipped::Codebook& codebook, size_t code) {
  const size_t middle = codebook.levels.size();
  return code < middle ? -codebook.levels[middle - 1 - code] : codebook.levels[code - middle];
}

// `factors` are in descending order.
void expectExactCodes(const shipped::Codebook& codebook, bool isTurbo, bool hasCells, std::vector<float> factors) {
  const Context context(fmt::format("{} of {} bits{}, times {} to {}", isTurbo ? "turbo" : "mlx1", codebook.bits,
                                    hasCells ? " with cells" : "", factors.front(), factors.back()));
  const std::vector<float> boundaries = boundariesOf(codebook);
  Seeded random(static_cast<uint64_t>(codebook.bits));
  std::vector<float> numbers = numbersFor(boundaries, factors, random);
  std::vector<uint32_t> codes, gotCodes(factors.size() * numbers.size(), UINT32_MAX);
  std::vector<float> entries, gotEntries(gotCodes.size());
  for (const float factor : factors) {
    for (const float x : numbers) {
      const auto below = std::lower_bound(boundaries.begin(), boundaries.end(), x * factor) - boundaries.begin();
      const auto code = static_cast<uint32_t>(below);
      entries.push_back(entryOf(codebook, code));
      // Cells of negative entries are in descending order.
      const auto middle = static_cast<uint32_t>(codebook.levels.size());
      codes.push_back(hasCells && code < middle ? middle - 1 - code : code);
    }
  }
  std::vector<Params> params{{static_cast<uint32_t>(numbers.size()), static_cast<uint32_t>(factors.size())}};
  REQUIRE(
      runOn(hostDevice({.checking = HostOptions::Checking::full}),
            {.function = hasCells ? "searchCells" : "searchCodes",
             .grid = threads({64, 1, 1}, {64, 1, 1}),
             .buffers = {bytesOf(params), bytesOf(numbers), bytesOf(factors), bytesOf(gotCodes), bytesOf(gotEntries)},
             .constants = {{kKVCodecIsTurbo, isTurbo},
                           {kKVCodecIsAffine, false},
                           {kKVCodecKeyBits, static_cast<uint32_t>(codebook.bits)}}}));
  expectAll(gotCodes, codes, "code of number");
  expectAll(gotEntries, entries, "entry of number");
}

// What turbo divides by: from 1 - reach to 1 + reach times the RMS with 5 candidates, and to twice the reach with 17.
std::vector<float> factorsOf(int bits, int candidates) {
  const float spacing = shipped::kTurboReach[bits] / std::sqrt(static_cast<float>(candidates - 1));
  std::vector<float> factors;
  for (int m = 0; m < candidates; ++m) {
    factors.push_back(1 / (1 + spacing * (static_cast<float>(m) - static_cast<float>(candidates - 1) / 2)));
  }
  return factors;
}

}  // namespace

TEST(CodeSearch, FindsTheCellOfEveryNumber) {
  for (int bits = 2; bits <= 8; ++bits) {
    expectExactCodes(shipped::turbo(bits), true, false, {1});
    expectExactCodes(shipped::turbo(bits), true, false, factorsOf(bits, 17));
  }
  for (const int bits : {4, 5, 6, 8}) expectExactCodes(shipped::mlx1(bits), false, false, {1});
}

// From one candidate to the next, no value crosses two boundaries of a codebook that is searched by cells.
TEST(CodeSearch, FindsCellsFromThoseOfTheCandidateBefore) {
  for (int bits = 2; bits <= 5; ++bits) {
    for (const int candidates : {5, 17})
      expectExactCodes(shipped::turbo(bits), true, true, factorsOf(bits, candidates));
  }
}

}  // namespace mnk::test
