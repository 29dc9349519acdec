// Every number gets the code of its cell, whatever the polynomial guesses: how many boundaries lie below it.
#include <algorithm>
#include <cmath>

#include "Common/FunctionConstants.h"
#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "Ops/Common/KVCodecTables.hpp"

namespace mnk::test {

namespace {

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

// `factors` are in descending order.
void expectExactCodes(const KVCodec& codec, bool hasCells, std::vector<float> factors) {
  const Context context(fmt::format("{}{}, times {} to {}", codec.text(), hasCells ? " with cells" : "",
                                    factors.front(), factors.back()));
  const CodecTable& table = tableOf(codec);
  const std::vector<float> boundaries(table.boundaries.begin(), table.boundaries.end());
  Seeded random(codec.bits);
  std::vector<float> numbers = numbersFor(boundaries, factors, random);
  std::vector<uint32_t> codes, gotCodes(factors.size() * numbers.size(), UINT32_MAX);
  std::vector<float> entries, gotEntries(gotCodes.size());
  const auto middle = static_cast<uint32_t>(table.levels.size() / 2);
  for (const float factor : factors) {
    for (const float x : numbers) {
      const auto code = static_cast<uint32_t>(std::ranges::lower_bound(boundaries, x * factor) - boundaries.begin());
      entries.push_back(static_cast<float>(table.levels[code]));
      // Cells of negative entries are in descending order.
      codes.push_back(hasCells && code < middle ? middle - 1 - code : code);
    }
  }
  std::vector<uint32_t> counts{static_cast<uint32_t>(numbers.size()), static_cast<uint32_t>(factors.size())};
  REQUIRE(
      runOn(hostDevice({.checking = HostOptions::Checking::full}),
            {.function = hasCells ? "searchCells" : "searchCodes",
             .grid = threads({64, 1, 1}, {64, 1, 1}),
             .buffers = {bytesOf(counts), bytesOf(numbers), bytesOf(factors), bytesOf(gotCodes), bytesOf(gotEntries)},
             .constants = {{kKVCodecIsTurbo, codec.name == KVCodec::Name::turbo},
                           {kKVCodecIsAffine, false},
                           {kKVCodecKeyBits, codec.bits}}}));
  expectAll(gotCodes, codes, "code of number");
  expectAll(gotEntries, entries, "entry of number");
}

// What turbo divides by, from the smallest size to the largest.
std::vector<float> factorsOf(uint32_t bits, uint32_t candidates) {
  std::vector<float> factors;
  for (const double size : turboSizes(bits, candidates)) factors.push_back(static_cast<float>(1 / size));
  return factors;
}

}  // namespace

TEST(CodeSearch, FindsTheCellOfEveryNumber) {
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (const uint32_t candidates : {1, 17}) expectExactCodes({.bits = bits}, false, factorsOf(bits, candidates));
  }
  for (const uint32_t bits : {4, 5, 6, 8}) expectExactCodes({KVCodec::Name::mlx1, bits}, false, {1});
}

// From one candidate to the next, no value crosses two boundaries of a codebook that is searched by cells.
TEST(CodeSearch, FindsCellsFromThoseOfTheCandidateBefore) {
  for (uint32_t bits = 2; bits <= 5; ++bits) {
    for (const uint32_t candidates : {5, 17}) expectExactCodes({.bits = bits}, true, factorsOf(bits, candidates));
  }
}

}  // namespace mnk::test
