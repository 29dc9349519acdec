// Vectors that a codec could stumble over, on every device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::test {

namespace {

using Vectors = std::vector<std::vector<float>>;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Codec {
  VectorCoding coding;
  uint64_t headDim;

  // Of a tie, all codecs take the lower code but one, which rounds up.
  uint32_t codeOfZero() const {
    return (1u << coding.codec.bits) / 2 - (coding.codec.name == KVCodec::Name::mlx1Affine4 ? 0 : 1);
  }
  bool isTurbo() const { return coding.codec.name == KVCodec::Name::turbo; }
  std::string text() const {
    return fmt::format("{} at {}, {} candidates, {}", coding.codec.text(), headDim, coding.candidates,
                       coding.rule == KVScaleRule::unbiased ? "unbiased" : "least squares");
  }
};

// Each kind of lane layout, packing and scale.
std::vector<Codec> codecs() {
  const auto turbo = [](uint32_t bits, uint64_t headDim, uint32_t candidates, KVScaleRule rule) {
    return Codec{{.codec = {.bits = bits}, .candidates = candidates, .rule = rule}, headDim};
  };
  const auto mlx1 = [](uint32_t bits, uint64_t headDim, KVCodec::Name name = KVCodec::Name::mlx1) {
    return Codec{{.codec = {.name = name, .bits = bits}}, headDim};
  };
  constexpr KVCodec::Name kUnrotated = KVCodec::Name::mlx1Unrotated, kAffine4 = KVCodec::Name::mlx1Affine4;
  std::vector<Codec> all{mlx1(4, 4),
                         mlx1(4, 128),
                         mlx1(8, 256),
                         mlx1(4, 512),
                         mlx1(5, 512),
                         mlx1(4, 1024),
                         mlx1(8, 256, kUnrotated),
                         mlx1(5, 512, kUnrotated),
                         mlx1(4, 256, kAffine4),
                         mlx1(4, 512, kAffine4)};
  for (uint32_t candidates : {1, 5, 17}) {
    for (KVScaleRule rule : {KVScaleRule::unbiased, KVScaleRule::leastSquares}) {
      all.push_back(turbo(2, 32, candidates, rule));
      all.push_back(turbo(3, 64, candidates, rule));
      all.push_back(turbo(4, 128, candidates, rule));
      all.push_back(turbo(5, 256, candidates, rule));
      all.push_back(turbo(8, 512, candidates, rule));
    }
  }
  return all;
}

template <typename Body>
void forEveryCodec(Body body) {
  // As users get them: the reference costs more than the kernels here, and other suites run all orders of lanes.
  const auto& devices = devicesUnderTest();
  for (size_t i = 0; i < std::min<size_t>(devices.size(), 2); ++i) {
    const Context device(devices[i].name);
    for (const Codec& codec : codecs()) {
      const Context context(codec.text());
      body(devices[i].device, codec);
    }
  }
}

// Stores the vectors and compares each with the reference, and the counts.
StoredVectors expectAsReference(const std::shared_ptr<Device>& device, const Codec& codec, const Vectors& vectors) {
  const StoredVectors got = stored(device, codec.coding, vectors);
  std::array<uint32_t, 2> counts{};
  for (size_t v = 0; v < vectors.size(); ++v) {
    const CodedVector expected = encoded(codec.coding, widened(vectors[v]));
    counts[0] += expected.isNonFinite;
    counts[1] += expected.isSaturated;
    const std::string wrong = fault(codec.coding, expected, got.vectors[v]);
    if (!wrong.empty()) fail(__FILE__, __LINE__, fmt::format("vector {}: {}", v, wrong));
  }
  EXPECT_EQ(got.counts[0], counts[0]);
  EXPECT_EQ(got.counts[1], counts[1]);
  return got;
}

std::vector<float> times(std::vector<float> vector, float factor) {
  for (float& element : vector) element *= factor;
  return vector;
}

std::vector<uint32_t> codesOf(const Codec& codec, const StoredVector& vector) {
  return unpacked(codec.coding.codec, codec.headDim, vector.bytes);
}

double storedError(const Codec& codec, const std::vector<float>& vector, const StoredVector& got) {
  const auto read = decoded(codec.coding, codesOf(codec, got), got.scales);
  double error = 0, size = 0;
  for (size_t j = 0; j < vector.size(); ++j) {
    const double x = vector[j];
    error += (read[j] - x) * (read[j] - x);
    size += x * x;
  }
  return error / size;
}

}  // namespace

TEST(KVCacheQuantizeSpecial, ZerosAndSubnormalsAreZero) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    const uint64_t n = codec.headDim;
    std::vector<float> subnormals(n, 1e-40f);
    subnormals[1] = -std::numeric_limits<float>::denorm_min();
    subnormals[2] = 1.17e-38f;
    const Vectors vectors{std::vector<float>(n, 0.0f), std::vector<float>(n, -0.0f), subnormals};
    const auto got = expectAsReference(device, codec, vectors);
    for (const StoredVector& vector : got.vectors) {
      for (uint32_t code : codesOf(codec, vector)) EXPECT_EQ(code, codec.codeOfZero());
      for (uint64_t scale : vector.scales) EXPECT_EQ(scale, 0u);
    }
  });
}

TEST(KVCacheQuantizeSpecial, TakesVectorsOfAnySize) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Seeded random;
    Vectors vectors;
    for (float size : {1e-37f, 1e-30f, 1e-20f, 1e-12f, 1e-9f, 1e-7f, 1e-6f, 1e-3f, 1.0f, 6e3f, 1e5f, 1e20f, 2e37f}) {
      vectors.push_back(times(normalVector(random, codec.headDim), size));
    }
    // Sums of these, let alone of their squares, are not to be had in f32.
    std::vector<float> largest = normalVector(random, codec.headDim);
    for (float& element : largest) element = std::copysign(kLargest, element);
    vectors.push_back(largest);
    vectors.push_back(std::vector<float>(codec.headDim, kLargest));
    vectors.push_back(std::vector<float>(codec.headDim, 6e4f));
    expectAsReference(device, codec, vectors);
  });
}

TEST(KVCacheQuantizeSpecial, ElementsMayBeOfVeryDifferentSize) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Seeded random;
    Vectors vectors;
    for (int step : {1, 7, 60}) {
      std::vector<float> falling = normalVector(random, codec.headDim);
      for (size_t j = 0; j < falling.size(); ++j) falling[j] = std::ldexp(falling[j], -step * static_cast<int>(j % 6));
      vectors.push_back(falling);
      vectors.push_back(times(falling, 0x1p100f));
      std::reverse(falling.begin(), falling.end());
      vectors.push_back(falling);
    }
    std::vector<float> far(codec.headDim, 1e-38f);
    far[codec.headDim / 3] = kLargest / 2;
    vectors.push_back(far);
    expectAsReference(device, codec, vectors);
  });
}

// Twice the vector has the same codes and twice the scale, whatever the size.
TEST(KVCacheQuantizeSpecial, PowersOfTwoChangeTheScaleAlone) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Seeded random;
    const std::vector<float> vector = normalVector(random, codec.headDim);
    const std::vector<int> powers{0, -95, -60, -31, -24, -13, -12, -9, -3, -1, 1, 5, 12, 13, 17, 62, 64, 90, 117, 120};
    Vectors vectors;
    for (int power : powers) vectors.push_back(times(vector, std::ldexp(1.0f, power)));
    const StoredVectors got = stored(device, codec.coding, vectors);
    const DType dtype = codec.coding.codec.scaleType();
    for (size_t v = 0; v < powers.size(); ++v) {
      const Context context(fmt::format("2^{}", powers[v]));
      const bool hasDirection = codec.isTurbo() || powers[v] > -28;
      if (hasDirection) EXPECT(got.vectors[v].bytes == got.vectors[0].bytes);
      for (size_t index = 0; index < got.vectors[v].scales.size(); ++index) {
        const double exact = std::ldexp(valueOf(dtype, got.vectors[0].scales[index]), powers[v]);
        // Where the dtype has fewer digits, the scale of the first vector was rounded once too often.
        if (codec.isTurbo() && exact < 0x1p-14 && exact > 0x1p-26) continue;
        EXPECT_EQ(got.vectors[v].scales[index], scaleBits(codec.coding.codec, exact));
      }
    }
  });
}

TEST(KVCacheQuantizeSpecial, OneBadElementAffectsOnlyItsVector) {
  forEveryCodec([](const std::shared_ptr<Device>& device, Codec codec) {
    Seeded random;
    Vectors vectors;
    for (int v = 0; v < 9; ++v) vectors.push_back(normalVector(random, codec.headDim));
    const StoredVectors before = expectAsReference(device, codec, vectors);
    vectors[1][0] = kNaN;
    vectors[3][codec.headDim - 1] = kInfinity;
    vectors[4][codec.headDim / 2] = -kInfinity;
    vectors[7][codec.headDim / 2 + 1] = -kNaN;
    vectors[7][1] = kInfinity;
    for (KVNonFinite policy : {KVNonFinite::zero, KVNonFinite::propagate}) {
      codec.coding.nonFinite = policy;
      const StoredVectors got = expectAsReference(device, codec, vectors);
      EXPECT_EQ(got.counts[0], 4u);
      for (size_t v : {0, 2, 5, 6, 8}) {
        EXPECT(got.vectors[v].bytes == before.vectors[v].bytes);
        EXPECT(got.vectors[v].scales == before.vectors[v].scales);
      }
      for (uint64_t scale : got.vectors[3].scales) {
        EXPECT_EQ(isNaN(codec.coding.codec.scaleType(), scale), policy == KVNonFinite::propagate);
      }
    }
  });
}

// All elements of a turned one-hot vector are alike, and one level with the right scale is all that it takes. An f16 is
// right to 2^-11.
TEST(KVCacheQuantizeSpecial, OneHotVectorsAreExact) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Vectors vectors;
    for (uint64_t place : {uint64_t{0}, uint64_t{1}, codec.headDim / 2, codec.headDim - 1}) {
      for (float value : {1.0f, -3.0f}) {
        vectors.emplace_back(codec.headDim, 0.0f);
        vectors.back()[place] = value;
      }
    }
    const StoredVectors got = expectAsReference(device, codec, vectors);
    if (!codec.isTurbo()) return;
    for (size_t v = 0; v < vectors.size(); ++v) {
      const double error = storedError(codec, vectors[v], got.vectors[v]);
      if (!(error <= 0x1p-22)) fail(__FILE__, __LINE__, fmt::format("vector {}: error {}", v, error));
    }
  });
}

// Half the elements of a turned two-hot vector are exactly zero, which lies on a boundary.
TEST(KVCacheQuantizeSpecial, TiesTakeTheIndexOfZero) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Vectors vectors;
    for (uint64_t place : {uint64_t{1}, codec.headDim / 2, codec.headDim - 1}) {
      for (float value : {1.0f, -1.0f}) {
        vectors.emplace_back(codec.headDim, 0.0f);
        vectors.back()[0] = 1;
        vectors.back()[place] = value;
      }
    }
    const StoredVectors got = expectAsReference(device, codec, vectors);
    for (size_t v = 0; v < vectors.size(); ++v) {
      const auto turned = rotated(codec.coding.codec.name, widened(vectors[v]));
      const auto codes = codesOf(codec, got.vectors[v]);
      for (size_t j = 0; j < codes.size(); ++j) {
        if (turned[j] == 0) EXPECT_EQ(codes[j], codec.codeOfZero());
      }
    }
  });
}

// The rows of signs are the worst there is: turned, one element holds all. Constant and alternating rows are what signs
// are for.
TEST(KVCacheQuantizeSpecial, RowsThatTheRotationMeets) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    const auto signs = signsOf(codec.coding.codec.name, codec.headDim);
    std::vector<float> alternating(codec.headDim), ramp(codec.headDim);
    for (size_t j = 0; j < alternating.size(); ++j) {
      alternating[j] = j % 2 ? 1.0f : -1.0f;
      ramp[j] = static_cast<float>(j);
    }
    const Vectors vectors{{signs.begin(), signs.end()}, std::vector<float>(codec.headDim, 0.7f), alternating, ramp};
    const StoredVectors got = expectAsReference(device, codec, vectors);
    if (codec.coding.rule != KVScaleRule::leastSquares) return;
    const double limit = codec.coding.codec.bits == 8 ? 3e-3 : codec.coding.codec.bits == 5 ? 0.2 : 1;
    const double error = storedError(codec, vectors[0], got.vectors[0]);
    if (!(error <= limit)) fail(__FILE__, __LINE__, fmt::format("error {} of the row of signs", error));
  });
}

TEST(KVCacheQuantizeSpecial, CountsScalesThatAreTooLarge) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Codec codec{{.codec = {.bits = 4}}, 64};
    Seeded random;
    Vectors vectors;
    for (float size : {1.0f, 1e6f, 1e4f, 1e30f, 7e4f}) vectors.push_back(times(normalVector(random, 64), size));
    const StoredVectors got = expectAsReference(device, codec, vectors);
    EXPECT(got.counts[1] >= 2);
    EXPECT_EQ(got.vectors[1].scales[0], 0x7bffu);
    EXPECT_EQ(got.vectors[3].scales[0], 0x7bffu);
  });
}

// Nothing evens out the halves of a vector that is not rotated: each has a scale of its own, however small.
TEST(KVCacheQuantizeSpecial, UnrotatedHalvesMayBeOfAnySize) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Codec codec{{.codec = {.name = KVCodec::Name::mlx1Unrotated, .bits = 8}}, 512};
    Seeded random;
    Vectors vectors;
    for (float size : {0.0f, 1e-30f, 1e-9f, 1e-7f, 1.0f, 1e10f, 1e28f}) {
      std::vector<float> vector = normalVector(random, 512);
      for (size_t j = 0; j < 512; ++j) vector[j] *= j < 256 ? size : 1e-8f;
      vectors.push_back(vector);
      std::reverse(vector.begin(), vector.end());
      vectors.push_back(vector);
    }
    expectAsReference(device, codec, vectors);
  });
}

// A vector counts once, whichever of its two scales is too large.
TEST(KVCacheQuantizeSpecial, CountsEitherScaleOfAVectorThatHasTwo) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Codec codec{{.codec = {.name = KVCodec::Name::mlx1, .bits = 4}}, 512};
    const auto signs = signsOf(KVCodec::Name::mlx1, 512);
    // Turned, equal halves fill the first block alone, and opposite halves the second.
    Vectors vectors(3, std::vector<float>(512));
    for (size_t j = 0; j < 512; ++j) {
      const size_t k = j % 256;
      const double element = (k * k / 7 % 2 ? signs[j] : -signs[j]) * static_cast<double>(kLargest);
      vectors[0][j] = static_cast<float>(element);
      vectors[1][j] = static_cast<float>(j < 256 ? element : -element);
      vectors[2][j] = static_cast<float>(element / 4);
    }
    const StoredVectors got = expectAsReference(device, codec, vectors);
    EXPECT_EQ(got.counts[1], 2u);
    EXPECT_EQ(got.vectors[0].scales[1], 0u);
    EXPECT_EQ(got.vectors[1].scales[0], 0u);
  });
}

}  // namespace mnk::test
