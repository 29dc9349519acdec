// Vectors that a codec could stumble over.
#include <algorithm>
#include <cmath>
#include <limits>

#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"

namespace mnk::test {

namespace {

using Vector = std::vector<float>;
using Vectors = std::vector<Vector>;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Codec {
  VectorCoding coding;
  uint64_t headDim;

  bool isTurbo() const { return coding.codec.name == KVCodec::Name::turbo; }
  std::string text() const {
    return fmt::format("{} at {}, {} candidates, {}", coding.codec.text(), headDim, coding.candidates,
                       coding.rule == KVScaleRule::unbiased ? "unbiased" : "least squares");
  }
};

// Each kind of lane layout, packing and scale.
std::vector<Codec> codecs() {
  using enum KVCodec::Name;
  std::vector<Codec> all;
  const std::tuple<KVCodec::Name, uint32_t, uint64_t> others[] = {
      {mlx1, 4, 4},    {mlx1, 4, 128},          {mlx1, 8, 256},          {mlx1, 4, 512},        {mlx1, 5, 512},
      {mlx1, 4, 1024}, {mlx1Unrotated, 8, 256}, {mlx1Unrotated, 5, 512}, {mlx1Affine4, 4, 256}, {mlx1Affine4, 4, 512}};
  for (const auto& [name, bits, headDim] : others) all.push_back({{.codec = {.name = name, .bits = bits}}, headDim});
  for (uint32_t candidates : {1, 5, 17}) {
    for (KVScaleRule rule : {KVScaleRule::unbiased, KVScaleRule::leastSquares}) {
      for (const auto& [bits, headDim] : {std::pair(2u, 32u), {3, 64}, {4, 128}, {5, 256}, {8, 512}}) {
        all.push_back({{.codec = {.bits = bits}, .candidates = candidates, .rule = rule}, headDim});
      }
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

// Stores the vectors and compares each with the reference, and the counts. Where sums are exact, zeros, which lie on a
// boundary, have the code of zero: of a tie, all codecs take the lower code but one, which rounds up.
StoredVectors expectAsReference(const std::shared_ptr<Device>& device, const Codec& codec, const Vectors& vectors,
                                bool areExact = false) {
  const KVCodec& kind = codec.coding.codec;
  const uint32_t codeOfZero = (1u << kind.bits) / 2 - (kind.name == KVCodec::Name::mlx1Affine4 ? 0 : 1);
  const StoredVectors got = stored(device, codec.coding, vectors);
  std::array<uint32_t, 2> counts{};
  for (size_t v = 0; v < vectors.size(); ++v) {
    const Context context(fmt::format("vector {}", v));
    const CodedVector expected = encoded(codec.coding, widened(vectors[v]));
    counts[0] += expected.isNonFinite;
    counts[1] += expected.isSaturated;
    EXPECT_EQ(fault(codec.coding, expected, got.vectors[v]), "");
    const auto codes = unpacked(kind, codec.headDim, got.vectors[v].bytes);
    for (size_t j = 0; j < codes.size() && areExact; ++j) {
      if (expected.rotated[j] == 0) EXPECT_EQ(codes[j], codeOfZero);
    }
  }
  EXPECT(got.counts == counts);
  return got;
}

Vector times(Vector vector, float factor) {
  for (float& element : vector) element *= factor;
  return vector;
}

Vector hot(uint64_t headDim, std::initializer_list<std::pair<uint64_t, float>> elements) {
  Vector vector(headDim);
  for (const auto& [place, value] : elements) vector[place] = value;
  return vector;
}

Vectors vectorsOfAnySize(Seeded& random, uint64_t headDim) {
  Vectors vectors;
  for (float size : {1e-37f, 1e-30f, 1e-20f, 1e-12f, 1e-9f, 1e-7f, 1e-6f, 1e-3f, 1.0f, 6e3f, 1e5f, 1e20f, 2e37f}) {
    vectors.push_back(times(normalVector(random, headDim), size));
  }
  // Sums of these, let alone of their squares, are not to be had in f32.
  Vector& largest = vectors.emplace_back(normalVector(random, headDim));
  for (float& element : largest) element = std::copysign(kLargest, element);
  for (float element : {kLargest, 6e4f}) vectors.emplace_back(headDim, element);
  return vectors;
}

Vectors unevenVectors(Seeded& random, uint64_t headDim) {
  Vectors vectors;
  for (int step : {1, 7, 60}) {
    Vector falling = normalVector(random, headDim);
    for (size_t j = 0; j < falling.size(); ++j) falling[j] = std::ldexp(falling[j], -step * static_cast<int>(j % 6));
    vectors.push_back(falling);
    vectors.push_back(times(falling, 0x1p100f));
    vectors.emplace_back(falling.rbegin(), falling.rend());
  }
  vectors.emplace_back(headDim, 1e-38f);
  vectors.back()[headDim / 3] = kLargest / 2;
  // Nothing evens out the halves of a vector that is not rotated: each has a scale of its own, however small.
  for (float size : {0.0f, 1e-30f, 1e-9f, 1e-7f, 1.0f, 1e10f, 1e28f}) {
    Vector vector = times(normalVector(random, headDim), 1e-8f);
    for (size_t j = 0; j < headDim / 2; ++j) vector[j] *= 1e8f * size;
    vectors.push_back(vector);
    vectors.emplace_back(vector.rbegin(), vector.rend());
  }
  return vectors;
}

// Zeros and subnormal numbers, which are zero; one-hot vectors, whose elements are alike once they are turned, and
// two-hot ones, of which half are exactly zero then; and rows that the rotation is for, or meets: turned, all of a row
// of signs is in one element.
Vectors regularVectors(const Codec& codec) {
  const uint64_t n = codec.headDim;
  const auto signs = signsOf(codec.coding.codec.name, n);
  Vector subnormals(n, 1e-40f), alternating(n), ramp(n);
  subnormals[1] = -std::numeric_limits<float>::denorm_min();
  subnormals[2] = 1.17e-38f;
  for (size_t j = 0; j < n; ++j) {
    alternating[j] = j % 2 ? 1.0f : -1.0f;
    ramp[j] = static_cast<float>(j);
  }
  Vectors vectors{Vector(n, 0.0f),  Vector(n, -0.0f), subnormals, {signs.begin(), signs.end()},
                  Vector(n, 0.75f), alternating,      ramp};
  for (uint64_t place : {uint64_t{1}, n / 2, n - 1}) {
    vectors.push_back(hot(n, {{place, -3.0f}}));
    for (float value : {1.0f, -1.0f}) vectors.push_back(hot(n, {{0, 1.0f}, {place, value}}));
  }
  return vectors;
}

}  // namespace

TEST(KVCacheQuantizeSpecial, TakesVectorsOfAnySize) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Seeded random;
    expectAsReference(device, codec, vectorsOfAnySize(random, codec.headDim));
    expectAsReference(device, codec, unevenVectors(random, codec.headDim));
    expectAsReference(device, codec, regularVectors(codec), true);
  });
}

// Twice the vector has the same codes and twice the scale, whatever the size.
TEST(KVCacheQuantizeSpecial, PowersOfTwoChangeTheScaleAlone) {
  forEveryCodec([](const std::shared_ptr<Device>& device, const Codec& codec) {
    Seeded random;
    const Vector vector = normalVector(random, codec.headDim);
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
      for (size_t v : {0, 2, 5, 6, 8}) EXPECT(got.vectors[v] == before.vectors[v]);
      for (uint64_t scale : got.vectors[3].scales) {
        EXPECT_EQ(isNaN(codec.coding.codec.scaleType(), scale), policy == KVNonFinite::propagate);
      }
    }
  });
}

// A vector counts once, whichever of its two scales is too large.
TEST(KVCacheQuantizeSpecial, CountsEitherScaleOfAVectorThatHasTwo) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Codec codec{{.codec = {.name = KVCodec::Name::mlx1, .bits = 4}}, 512};
    const auto signs = signsOf(KVCodec::Name::mlx1, 512);
    // Turned, equal halves fill the first block alone, and opposite halves the second.
    Vectors vectors(3, Vector(512));
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
