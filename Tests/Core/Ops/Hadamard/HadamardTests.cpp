// Hadamard on every device against the definition of the transform.
#include <bit>
#include <cmath>

#include "Harness/SoftFloat.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"

namespace mnk::test {

namespace {

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

// What becomes of the values in f32, turned in place and back.
std::vector<double> thereAndBack(const std::shared_ptr<Device>& device, const HadamardCase& turn,
                                 const std::vector<double>& values) {
  Seeded random;
  HadamardRun opRun(device, turn, random);
  opRun.set("from", bytesOfValues(DType::f32, values));
  Hadamard op = opRun.op();
  for (const bool isInverse : {false, true}) {
    op.isInverse = isInverse;
    run(device, op);
  }
  return valuesOf(DType::f32, opRun.now("from"));
}

}  // namespace

TEST(Hadamard, FollowsItsDefinition) {
  std::vector<HadamardCase> cases;
  for (uint64_t length : everyLength()) {
    for (const auto& signs : signsAt(length)) {
      for (bool isInverse : {false, true}) {
        HadamardCase turn{.length = length, .vectors = length > 512 ? 1u : 5u, .signs = signs, .isInverse = isInverse};
        if (length == 112 && !signs) turn.vectors = 2341;  // enough of them for a lane to hold more of each
        if (isInverse) turn.into = DType::f32;
        turn.name = fmt::format("{}{}, signs {}", length, isInverse ? ", inverse" : "", signs ? name(*signs) : "none");
        cases.push_back(turn);
      }
    }
  }
  runOnEveryDevice(cases);
}

TEST(Hadamard, ConvertsBetweenDTypes) {
  Seeded random;
  std::vector<HadamardCase> cases;
  for (DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (std::optional<DType> into : {std::optional<DType>{}, {DType::f32}, {DType::f16}, {DType::bf16}}) {
      for (uint64_t shift : {0, 1, 2}) {
        cases.push_back({.name = fmt::format("{} to {}, {} off", name(from), into ? name(*into) : "itself", shift),
                         .length = everyLength()[random.below(12)],  // up to 512
                         .vectors = 1 + random.below(9),
                         .from = from,
                         .into = into,
                         .shift = shift});
      }
    }
  }
  runOnEveryDevice(cases);
}

// Sums of small integers are exact, and so is 1 / sqrt(n) where n is a power of four: twice gives the very same bits.
TEST(Hadamard, IsExactForSmallIntegers) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (uint64_t length = 4; length <= Hadamard::kMaxLength; length *= 4) {
      for (const auto& signs : signsAt(length)) {
        const Context context(fmt::format("{}, signs {}", length, signs ? name(*signs) : "none"));
        const auto most = static_cast<double>(8192 / length);
        std::vector<double> values;
        for (uint64_t index = 0; index < 3 * length; ++index) {
          values.push_back(static_cast<double>(random.below(8192 / length * 2 + 1)) - most);
        }
        EXPECT(thereAndBack(device, {.length = length, .signs = signs}, values) == values);
      }
    }
  });
}

// No sum on the way is larger than the vector is long.
TEST(Hadamard, TurnsHugeVectors) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (uint64_t length : {4, 80, 112, 128, 192, 256, 4096}) {
      const Context context(fmt::format("{} elements", length));
      std::vector<double> values(length, 0);
      values[1] = 3e38f;
      const auto back = thereAndBack(device, {.length = length, .vectors = 1}, values);
      for (size_t i = 0; i < length; ++i) EXPECT(std::abs(back[i] - values[i]) <= 1e32);
    }
  });
}

}  // namespace mnk::test
