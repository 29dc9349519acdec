// Hadamard on every device against the definition of the transform.
#include <bit>
#include <cmath>
#include <cstring>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/GuardedTensor.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"

namespace mnk::test {

namespace {

struct Turn {
  uint64_t length = 32;
  uint64_t vectors = 3;
  DType from = DType::f32;
  std::optional<DType> into = {};  // in place without
  std::optional<KVCodec::Name> signs = {};
  bool isInverse = false;
  uint64_t shift = 0;

  std::string text() const {
    return fmt::format("{} vectors of {} {}{}{}, signs {}, at byte {}", vectors, length, name(from),
                       into ? fmt::format(" into {}", name(*into)) : "", isInverse ? ", inverse" : "",
                       signs ? name(*signs) : "none", shift);
  }
};

std::vector<std::byte> bytesIn(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * byteSize(dtype));
  for (size_t index = 0; index < values.size(); ++index) {
    const uint64_t bits = nearestBits(dtype, values[index]);
    std::memcpy(&bytes[index * byteSize(dtype)], &bits, byteSize(dtype));
  }
  return bytes;
}

// What the device makes of the values, which the source dtype must hold.
std::vector<double> turned(const std::shared_ptr<Device>& device, const Turn& turn, const std::vector<double>& values) {
  const Shape shape = REQUIRE(Shape::make({turn.vectors, turn.length}));
  const GuardedTensor from(device, turn.from, shape, turn.shift);
  from.set(bytesIn(turn.from, values));
  Hadamard op{.from = from.tensor(), .signs = turn.signs, .isInverse = turn.isInverse};
  std::optional<GuardedTensor> into;
  if (turn.into) into.emplace(device, *turn.into, shape, turn.shift / byteSize(turn.from) * byteSize(*turn.into));
  if (into) op.into = into->tensor();
  CommandEncoder encoder(device, "hadamard");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  from.expectBordersIntact("from");
  if (!into) return valuesOf(turn.from, from.bytes());
  into->expectBordersIntact("into");
  EXPECT(from.bytes() == bytesIn(turn.from, values));
  return valuesOf(*turn.into, into->bytes());
}

std::vector<double> expectedFrom(const Turn& turn, std::span<const double> values) {
  return turnedValues(values, turn.length, turn.signs, turn.isInverse);
}

std::vector<double> randomValues(Seeded& random, const Turn& turn) {
  std::vector<double> values;
  for (float element : normalVector(random, turn.vectors * turn.length)) {
    values.push_back(valueOf(turn.from, nearestBits(turn.from, static_cast<double>(element))));
  }
  return values;
}

std::vector<std::optional<KVCodec::Name>> signsAt(uint64_t length) {
  std::vector<std::optional<KVCodec::Name>> all{std::nullopt};
  if (std::has_single_bit(length)) all.push_back(KVCodec::Name::mlx1);
  if (length >= 32 && length <= 512) all.push_back(KVCodec::Name::turbo);
  return all;
}

// Powers of two, and what turbo has beside them.
std::vector<uint64_t> everyLength() {
  std::vector<uint64_t> lengths{80, 96, 112, 192};
  for (uint64_t length = 4; length <= Hadamard::kMaxLength; length *= 2) lengths.push_back(length);
  return lengths;
}

}  // namespace

TEST(Hadamard, FollowsItsDefinition) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (uint64_t length : everyLength()) {
      for (const auto& signs : signsAt(length)) {
        for (bool isInverse : {false, true}) {
          Turn turn{.length = length, .vectors = length > 512 ? 1u : 5u, .signs = signs, .isInverse = isInverse};
          if (length == 112 && !signs) turn.vectors = 2341;  // enough of them for a lane to hold more of each
          if (isInverse) turn.into = DType::f32;
          const Context context(turn.text());
          const auto values = randomValues(random, turn);
          const double error = errorOf(turned(device, turn, values), expectedFrom(turn, values));
          if (!(error <= allowedHadamardError(DType::f32))) fail(__FILE__, __LINE__, fmt::format("error {}", error));
        }
      }
    }
  });
}

TEST(Hadamard, ConvertsBetweenDTypes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (DType from : {DType::f32, DType::f16, DType::bf16}) {
      for (std::optional<DType> into : {std::optional<DType>{}, {DType::f32}, {DType::f16}, {DType::bf16}}) {
        for (uint64_t elements : {0, 1, 2}) {
          const auto lengths = everyLength();
          const uint64_t length = lengths[random.below(12)];  // up to 512
          const Turn turn{.length = length,
                          .vectors = 1 + random.below(9),
                          .from = from,
                          .into = into,
                          .shift = elements * byteSize(from)};
          const Context context(turn.text());
          const auto values = randomValues(random, turn);
          const auto got = turned(device, turn, values);
          const double error = errorOf(got, expectedFrom(turn, values));
          const double allowed = allowedHadamardError(into.value_or(from));
          if (!(error <= allowed)) fail(__FILE__, __LINE__, fmt::format("error {}, allowed {}", error, allowed));
        }
      }
    }
  });
}

TEST(Hadamard, InverseRestoresTheInput) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (uint64_t length : everyLength()) {
      for (const auto& signs : signsAt(length)) {
        Turn turn{.length = length, .vectors = 2, .signs = signs};
        const Context context(turn.text());
        const auto values = randomValues(random, turn);
        const auto there = turned(device, turn, values);
        turn.isInverse = true;
        const double error = errorOf(turned(device, turn, there), values);
        if (!(error <= 2e-13)) fail(__FILE__, __LINE__, fmt::format("error {}", error));
      }
    }
  });
}

// Sums of small integers are exact, and so is 1 / sqrt(n) where n is a power of four: twice gives the very same bits.
TEST(Hadamard, IsExactForSmallIntegers) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (uint64_t length = 4; length <= Hadamard::kMaxLength; length *= 4) {
      for (const auto& signs : signsAt(length)) {
        Turn turn{.length = length, .vectors = 3, .into = DType::f32, .signs = signs};
        const Context context(turn.text());
        std::vector<double> values;
        for (uint64_t index = 0; index < turn.vectors * length; ++index) {
          values.push_back(static_cast<double>(random.below(8192 / length * 2 + 1)) -
                           static_cast<double>(8192 / length));
        }
        const auto there = turned(device, turn, values);
        EXPECT(there == expectedFrom(turn, values));
        turn.isInverse = true;
        EXPECT(turned(device, turn, there) == values);
      }
    }
  });
}

// The first element of a turned one-hot vector has the sign of its place, and the other one past the first block.
TEST(Hadamard, HasTheSignsOfTheCodecs) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const KVCodec::Name codec : {KVCodec::Name::turbo, KVCodec::Name::mlx1}) {
      for (uint64_t length : kTurboHeadDims) {
        if (codec == KVCodec::Name::mlx1 && !std::has_single_bit(length)) continue;
        const Turn turn{.length = length, .vectors = length, .into = DType::f32, .signs = codec};
        const Context context(turn.text());
        std::vector<double> oneHots(length * length, 0);
        for (uint64_t j = 0; j < length; ++j) oneHots[j * length + j] = 1;
        const auto got = turned(device, turn, oneHots);
        const auto signs = signsOf(codec, length);
        for (uint64_t j = 0; j < length; ++j) {
          const bool isPastFirst = j >= (length & (~length + 1));
          if ((got[j * length] < 0) == ((signs[j] < 0) != isPastFirst)) continue;
          fail(__FILE__, __LINE__, fmt::format("element {} has another sign than in the reference", j));
        }
      }
    }
  });
}

// No sum on the way is larger than the vector is long.
TEST(Hadamard, TurnsHugeVectors) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t length : {4, 80, 112, 128, 192, 256, 4096}) {
      const Turn turn{.length = length, .vectors = 1};
      const Context context(turn.text());
      std::vector<double> values(length, 0);
      values[1] = 3e38f;
      const auto there = turned(device, turn, values);
      const auto back = turned(device, turn, there);
      for (size_t i = 0; i < length; ++i) EXPECT(std::abs(back[i] - values[i]) <= 1e32);
    }
  });
}

}  // namespace mnk::test
