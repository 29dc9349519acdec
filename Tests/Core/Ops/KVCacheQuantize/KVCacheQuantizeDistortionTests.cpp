// How much of a vector is lost, in a small sample. MNK_TEST_FULL=1 compares large samples with theory.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "Harness/EveryDevice.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/Common/TurboSigns.hpp"

namespace mnk::test {

namespace {

using Sample = std::vector<std::vector<float>>;

bool isFull() {
  const char* given = std::getenv("MNK_TEST_FULL");
  return given && std::string_view(given) == "1";
}

// Vectors of the normal distribution, in which one element may be some times as large.
Sample sampleOf(uint64_t headDim, float outlier = 1) {
  Seeded random(headDim);
  Sample sample((isFull() ? 5120000 : 51200) / headDim);
  for (size_t v = 0; v < sample.size(); ++v) {
    sample[v] = normalVector(random, headDim);
    sample[v][v % headDim] *= outlier;
  }
  return sample;
}

struct Loss {
  double error = 0;    // mean of |x - x'|^2 / |x|^2
  double slope = 0;    // mean of <x, x'> / |x|^2
  double tangent = 0;  // mean of e / (1 - e), which is the error of unbiased scales where e is that of least squares
};

// Rotations preserve all of these, so vectors that are rotated are compared in the domain of their codes.
Loss lossOf(const Sample& sample, const VectorCoding& coding) {
  const StoredVectors got = stored(devicesUnderTest()[0].device, coding, sample);
  const double share = 1 / static_cast<double>(sample.size());
  Loss loss;
  for (size_t v = 0; v < sample.size(); ++v) {
    const auto x = rotated(coding.codec.name, widened(sample[v]));
    const auto codes = unpacked(coding.codec, x.size(), got.vectors[v].bytes);
    const auto read = decodedRotated(coding.codec, codes, got.vectors[v].scales);
    const double error = relativeSquares(read, x);
    double size = 0, product = 0;
    for (size_t j = 0; j < x.size(); ++j) size += x[j] * x[j], product += read[j] * x[j];
    loss.error += share * error;
    loss.slope += share * product / size;
    loss.tangent += share * error / (1 - error);
  }
  return loss;
}

void expectNear(std::string_view name, double got, double expected, double relative) {
  if (std::abs(got / expected - 1) <= relative) return;
  fail(__FILE__, __LINE__, fmt::format("{}: got {}, expected {} within {}", name, got, expected, relative));
}

void expectAtMost(std::string_view name, double got, double limit) {
  if (got <= limit) return;
  fail(__FILE__, __LINE__, fmt::format("{}: got {}, expected {} or less", name, got, limit));
}

}  // namespace

// With least squares: a simulation of the codec in double, of other vectors. That with plain norms as scales agrees
// with what quadrature gives within 0.35 %. With the best codebooks, 5, 6, 7 and 8 bits would leave 2.411e-3, 6.196e-4,
// 1.57e-4 and 3.952e-5 at head dim 128.
TEST(KVCacheQuantizeDistortion, MatchesTheory) {
  struct Known {
    uint64_t headDim;
    uint32_t bits;
    double error;  // of one candidate
  };
  const Known known[] = {{64, 2, 0.113116},    {64, 3, 0.0325471},   {64, 4, 0.00886243},  {64, 8, 4.19447e-5},
                         {80, 2, 0.113782},    {80, 4, 0.00896845},  {80, 8, 4.24010e-5},  {96, 2, 0.114451},
                         {96, 4, 0.00904904},  {96, 8, 4.26689e-5},  {112, 2, 0.114882},   {112, 4, 0.00910316},
                         {112, 8, 4.30433e-5}, {128, 2, 0.115258},   {128, 3, 0.0335411},  {128, 4, 0.00916191},
                         {128, 5, 0.00243457}, {128, 6, 6.37961e-4}, {128, 7, 1.66075e-4}, {128, 8, 4.30651e-5},
                         {192, 2, 0.115936},   {192, 4, 0.00926809}, {192, 8, 4.36767e-5}, {256, 2, 0.116196},
                         {256, 3, 0.0340543},  {256, 4, 0.00932723}, {256, 5, 0.00248180}, {256, 6, 6.50694e-4},
                         {256, 8, 4.38932e-5}, {512, 4, 0.00940252}, {512, 8, 4.41629e-5}};
  // The most that a search may leave at head dim 128, from 2 bits on; 0 where there is no limit of its own.
  const double by5[] = {0, 0, 8.1e-3, 2.06e-3, 5.4e-4, 0, 3.7e-5}, by17[] = {0, 0, 7.9e-3, 2.0e-3, 5.1e-4, 0, 3.4e-5};
  const double noise = isFull() ? 0.01 : 0.1;  // what a mean over a sample may be off by
  Sample sample;
  std::puts("relative mean square error, least squares");
  for (const Known& at : known) {
    const Context context(fmt::format("{} bits at {}", at.bits, at.headDim));
    if (sample.empty() || sample[0].size() != at.headDim) sample = sampleOf(at.headDim);
    double last = 0;
    for (uint32_t candidates : {1, 5, 17}) {
      if (candidates == 17 && at.headDim != 128) continue;
      VectorCoding coding{.codec = {.bits = at.bits}, .candidates = candidates, .rule = KVScaleRule::leastSquares};
      const Loss got = lossOf(sample, coding);
      std::printf(
          "  head dim %3u, %u bits, %2u candidates: %.4g, without a search a simulation gives %.4g (%+.1f %%)\n",
          static_cast<unsigned>(at.headDim), at.bits, candidates, got.error, at.error,
          100 * (got.error / at.error - 1));
      if (candidates == 1) expectNear("error", got.error, at.error, noise);
      if (candidates == 5) expectAtMost("error of 5 candidates", got.error, last);
      last = got.error;
      if (at.headDim != 128) continue;
      const double limit = candidates == 1 ? 0 : (candidates == 5 ? by5 : by17)[at.bits - 2];
      if (limit != 0) expectAtMost("error of a search", got.error, limit * (isFull() ? 1 : 1.1));
      coding.rule = KVScaleRule::unbiased;
      const Loss unbiased = lossOf(sample, coding);
      expectNear("error of unbiased scales", unbiased.error, got.tangent, 1e-3);
      expectNear("slope of unbiased scales", unbiased.slope, 1, 5e-5);
    }
  }
}

// Why nothing new should be stored in a variant of mlx1: values at even distances fit normal numbers worse than a
// codebook for them, and without a rotation an outlier sets the scale of all other elements.
TEST(KVCacheQuantizeDistortion, VariantsOfMlx1LoseMore) {
  using enum KVCodec::Name;
  for (const uint64_t headDim : {256, 512}) {
    const Sample normal = sampleOf(headDim), outliers = sampleOf(headDim, 30);
    const auto errorOf = [&](const Sample& sample, KVCodec::Name name, uint32_t bits) {
      const KVCodec codec{.name = name, .bits = bits};
      const double error = lossOf(sample, {.codec = codec}).error;
      std::printf("  head dim %u, %s: %.4g\n", static_cast<unsigned>(headDim), codec.text().c_str(), error);
      return error;
    };
    EXPECT(errorOf(normal, mlx1Affine4, 4) > 1.2 * errorOf(normal, mlx1, 4));
    for (const uint32_t bits : {5u, 8u}) {
      expectNear("error without an outlier", errorOf(normal, mlx1Unrotated, bits), errorOf(normal, mlx1, bits), 0.1);
      EXPECT(errorOf(outliers, mlx1Unrotated, bits) > 10 * errorOf(outliers, mlx1, bits));
    }
  }
}

// An element that is 30 times the others has its energy spread over the whole vector: its codes lose no more than those
// of others. Where it stayed in its block, 2 bits would lose 0.17 of it at 112 in place of 0.10.
TEST(KVCacheQuantizeDistortion, OutliersLoseNoMoreThanOthers) {
  for (uint64_t headDim : kTurboHeadDims) {
    for (uint32_t bits : {2, 4}) {
      const Context context(fmt::format("{} bits at {}", bits, headDim));
      const VectorCoding coding{.codec = {.bits = bits}, .candidates = 1, .rule = KVScaleRule::leastSquares};
      const double with = lossOf(sampleOf(headDim, 30), coding).error;
      expectAtMost("error with an outlier", with, 1.05 * lossOf(sampleOf(headDim), coding).error);
    }
  }
}

}  // namespace mnk::test
