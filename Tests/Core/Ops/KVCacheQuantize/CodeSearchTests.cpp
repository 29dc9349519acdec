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
  float factor;
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

// Numbers whose product with the factor lies on a boundary, next to one, anywhere between them, or beyond all.
std::vector<float> numbersFor(const std::vector<float>& boundaries, float factor, Seeded& random) {
  std::vector<float> numbers{0.0f, -0.0f, 1e-30f, -1e-30f, 1e6f, -1e6f, 1e30f, -1e30f};
  for (const float boundary : boundaries) {
    float x = boundary / factor;
    for (int i = 0; i < 3; ++i) x = std::nextafter(x, -INFINITY);
    for (int i = 0; i < 7; ++i, x = std::nextafter(x, INFINITY)) numbers.push_back(x);
  }
  for (int i = 0; i < 4000; ++i) {
    const double unit = static_cast<double>(random.below(1 << 24)) / (1 << 23) - 1;
    numbers.push_back(static_cast<float>(unit * 2.2 * double(boundaries.back())));
  }
  return numbers;
}

void expectExactCodes(const shipped::Codebook& codebook, bool isTurbo, float factor) {
  const Context context(fmt::format("{} of {} bits, times {}", isTurbo ? "turbo" : "mlx1", codebook.bits, factor));
  const std::vector<float> boundaries = boundariesOf(codebook);
  Seeded random(static_cast<uint64_t>(codebook.bits));
  std::vector<float> numbers = numbersFor(boundaries, factor, random);
  std::vector<uint32_t> expected, got(numbers.size(), UINT32_MAX);
  for (const float x : numbers) {
    const auto below = std::lower_bound(boundaries.begin(), boundaries.end(), x * factor) - boundaries.begin();
    expected.push_back(static_cast<uint32_t>(below));
  }
  std::vector<Params> params{{static_cast<uint32_t>(numbers.size()), factor}};
  REQUIRE(runOn(hostDevice({.checking = host::Checking::full}),
                {.function = "searchCodes",
                 .grid = threads({64, 1, 1}, {64, 1, 1}),
                 .buffers = {bytesOf(params), bytesOf(numbers), bytesOf(got)},
                 .constants = {{kKVCodecIsTurbo, isTurbo},
                               {kKVCodecIsAffine, false},
                               {kKVCodecKeyBits, static_cast<uint32_t>(codebook.bits)}}}));
  expectAll(got, expected, "code of number");
}

}  // namespace

TEST(CodeSearch, FindsTheCellOfEveryNumber) {
  for (int bits = 2; bits <= 8; ++bits) {
    // The ends of the search for a better scale, which 17 candidates reach.
    const float reach = 2 * shipped::kTurboReach[bits];
    for (const float factor : {1.0f, 1 / (1 + reach), 1 / (1 - reach)}) {
      expectExactCodes(shipped::turbo(bits), true, factor);
    }
  }
  for (const int bits : {4, 5, 6, 8}) expectExactCodes(shipped::mlx1(bits), false, 1);
}

}  // namespace mnk::test
