// What is stored for a vector depends on the vector alone: not on what travels with it, and not on whether a processor
// flushes subnormal numbers.
#include <bit>
#include <cmath>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCacheQuantizeCase.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kTokens = 40;

float randomFloat(Seeded& random, uint32_t exponents) {
  return std::bit_cast<float>((static_cast<uint32_t>(random.next()) & 0x807fffffu) |
                              static_cast<uint32_t>(random.below(exponents)) << 23);
}

// Vectors where subnormal numbers arise unless they are kept away: of every size, of small sizes alone, and of small
// ones beside two large ones that cancel in half of all sums.
std::vector<std::vector<float>> vectorsOfEverySize(Seeded& random, uint64_t headDim) {
  std::vector<std::vector<float>> vectors(kTokens, std::vector<float>(headDim));
  for (size_t v = 0; v < kTokens; ++v) {
    const size_t kind = v % 3;
    for (float& number : vectors[v]) number = randomFloat(random, kind == 0 ? 255 : kind == 1 ? 12 : 60);
    if (kind == 2) vectors[v][0] = vectors[v][1] = 1;
  }
  return vectors;
}

// While it lives, this thread and those that it starts flush subnormal numbers to zero.
class Flushing {
 public:
  explicit Flushing(bool flushes) : before_(control()) {
    if (flushes) setControl(before_ | kFlush);
  }
  ~Flushing() { setControl(before_); }

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x8040;  // results and operands
  static uint64_t control() {
    return _mm_getcsr();
  }
  static void setControl(uint64_t word) {
    _mm_setcsr(static_cast<uint32_t>(word));
  }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t control() {
    uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void setControl(uint64_t word) {
    asm volatile("msr fpcr, %0" : : "r"(word));
  }
#endif
  uint64_t before_;
};

}  // namespace

// What counts is what is left when means and channel scales are applied: nothing, or more than f32 holds.
TEST(KVCacheQuantizeSpecial, JudgesVectorsByWhatIsCoded) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    std::array<float, 64> means, channelScales;
    means.fill(3.7f);
    channelScales.fill(-2.0f);
    channelScales[40] = 1e10f;
    const VectorCoding coding{.codec = {.bits = 5}, .means = means, .channelScales = channelScales};
    Seeded random;
    std::vector<std::vector<float>> vectors(4, normalVector(random, 64));
    vectors[1].assign(64, 3.7f);
    vectors[2][40] = 1e30f;
    const StoredVectors got = stored(device, coding, vectors);
    EXPECT_EQ(got.counts[0], 1u);
    for (size_t v = 0; v < vectors.size(); ++v)
      EXPECT_EQ(fault(coding, encoded(coding, widened(vectors[v])), got.vectors[v]), "");
    EXPECT_EQ(got.vectors[1].scales[0], 0u);
    EXPECT_EQ(got.vectors[2].scales[0], 0u);
    EXPECT(got.vectors[3].bytes == got.vectors[0].bytes);
  });
}

// A vector counts once, whichever of its two scales is too large. Turned, equal halves fill the first block alone, and
// opposite halves the second.
TEST(KVCacheQuantizeSpecial, CountsEitherScaleOfAVectorThatHasTwo) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const auto signs = signsOf(KVCodec::Name::mlx1, 512);
    std::vector<std::vector<float>> vectors(3, std::vector<float>(512));
    for (size_t j = 0; j < 512; ++j) {
      const size_t k = j % 256;
      const float element =
          static_cast<float>(k * k / 7 % 2 ? signs[j] : -signs[j]) * std::numeric_limits<float>::max();
      vectors[0][j] = element;
      vectors[1][j] = j < 256 ? element : -element;
      vectors[2][j] = element / 4;
    }
    const VectorCoding coding{.codec = {.name = KVCodec::Name::mlx1, .bits = 4}};
    const StoredVectors got = stored(device, coding, vectors);
    for (size_t v = 0; v < 3; ++v) EXPECT_EQ(fault(coding, encoded(coding, widened(vectors[v])), got.vectors[v]), "");
    EXPECT(got.counts == (std::array<uint32_t, 2>{0, 2}));
    EXPECT_EQ(got.vectors[0].scales[1], 0u);
    EXPECT_EQ(got.vectors[1].scales[0], 0u);
  });
}

// A multiple by a power of two has the same codes and the scale times that power, except where f16 rounds it again.
TEST(KVCacheQuantizeSpecial, PowersOfTwoChangeTheScaleAlone) {
  using enum KVCodec::Name;
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const auto& [codec, headDim] : {std::pair{KVCodec{turbo, 4}, 128},
                                         {KVCodec{turbo, 5}, 80},
                                         {KVCodec{mlx1, 8}, 256},
                                         {KVCodec{mlx1Unrotated, 8}, 512},
                                         {KVCodec{mlx1Affine4, 4}, 256}}) {
      const Context context(fmt::format("{} at {}", codec.text(), headDim));
      Seeded random;
      const std::vector<float> vector = normalVector(random, static_cast<uint64_t>(headDim));
      const std::vector<int> powers{0, -13, -9, -3, -1, 1, 5, 12};
      std::vector<std::vector<float>> vectors(powers.size(), vector);
      for (size_t v = 0; v < powers.size(); ++v) {
        for (float& element : vectors[v]) element = std::ldexp(element, powers[v]);
      }
      const StoredVectors got = stored(device, {.codec = codec}, vectors);
      const auto scaleOf = [&, dtype = codec.scaleType()](size_t v, size_t i) {
        return valueOf(dtype, got.vectors[v].scales[i]);
      };
      for (size_t v = 0; v < powers.size(); ++v) {
        EXPECT(got.vectors[v].bytes == got.vectors[0].bytes);
        for (size_t i = 0; i < got.vectors[v].scales.size(); ++i) {
          const double exact = std::ldexp(scaleOf(0, i), powers[v]);
          if (codec.name != turbo || exact >= 0x1p-14) EXPECT_EQ(scaleOf(v, i), exact);
        }
      }
    }
  });
}

TEST(KVCacheQuantizeSpecial, KeysDoNotDependOnTheValuesBesideThem) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(3);
    for (const KVCacheQuantizeCase& quantize : drawnQuantizes(100)) {
      if (quantize.write.valueHeadDim == 0 || quantize.hasDenseKeys) continue;
      const Context context(quantize.name);
      const KVCacheQuantizeRun opRun(device, quantize, random);
      const auto keys = [&] { return std::pair(opRun.now("key codes"), opRun.now("key scales")); };
      KVCacheQuantize alone = opRun.op();
      alone.values.reset(), alone.into.values.reset();
      run(device, alone);
      const auto expected = keys();
      opRun.restore();
      run(device, opRun.op());
      EXPECT(keys() == expected);
    }
  });
}

TEST(KVCacheQuantizeSpecial, FlushingDoesNotShow) {
  using enum KVCodec::Name;
  for (const KVCodec& codec : {KVCodec{turbo, 4}, KVCodec{turbo, 7}, KVCodec{mlx1, 4}, KVCodec{mlx1, 8},
                               KVCodec{mlx1Unrotated, 8}, KVCodec{mlx1Affine4, 4}}) {
    for (uint64_t headDim : {80, 112, 128, 192, 256, 512}) {
      for (bool hasFactors : {false, true}) {
        if (!codec.canQuantize(headDim) || (hasFactors && codec.name != turbo)) continue;
        const Context context(fmt::format("{} at {}{}", codec.text(), headDim, hasFactors ? ", with factors" : ""));
        Seeded random(headDim);
        const auto vectors = vectorsOfEverySize(random, headDim);
        std::vector<float> means(hasFactors ? headDim : 0), factors(means);
        for (float& mean : means) mean = randomFloat(random, 3);
        for (float& factor : factors) factor = random.below(2) == 0 ? 0x1p110f : 0x1p112f;
        std::vector<std::vector<StoredVector>> results;
        for (bool flushes : {false, true}) {
          const Flushing flushing(flushes);
          // Workers are started with the device and do as this thread does.
          const auto device = REQUIRE(host::makeDevice({.workers = 2}));
          const VectorCoding coding{.codec = codec, .candidates = 5, .means = means, .channelScales = factors};
          results.push_back(stored(device, coding, vectors).vectors);
        }
        EXPECT(results[0] == results[1]);
      }
    }
  }
}

}  // namespace mnk::test
