// Hadamard on every device against the definition of the transform, and its rules.
#include <bit>
#include <cmath>

#include "HadamardRun.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Hadamard/Hadamard.hpp"

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

Hadamard soundTurn() {
  return {.from = f16(3, 128), .into = f32(3, 128), .signs = KVCodec::Name::turbo};
}

const Break<Hadamard> kBrokenTurns[] = {
    [](Hadamard& op) { op.from = {}; },
    [](Hadamard& op) { op.into = Tensor(); },
    [](Hadamard& op) { op.into = u8(3, 128); },
    [](Hadamard& op) { op.signs = KVCodec::Name::mlx1Unrotated; },
    [](Hadamard& op) { op.signs = KVCodec::Name::mlx1Affine4; },
    [](Hadamard& op) { op.from = f16(3, 48); },
    [](Hadamard& op) { op.from = f16(3, 96), op.signs = KVCodec::Name::mlx1; },
    [](Hadamard& op) { op.from = f16(3, 2); },
    [](Hadamard& op) { op.from = f16(8192); },
    [](Hadamard& op) { op.from = f16(3, 0); },
    [](Hadamard& op) { op.from = f16(3, 16); },
    [](Hadamard& op) { op.into = f32(128, 3); },
    [](Hadamard& op) { op.from = f16(k2To31, 128), op.into.reset(); },
    [](Hadamard& op) { op.from = aliased(f16(4, 128), f16(3, 128)), op.into = aliased(op.from, f16(3, 128), 256); },
    [](Hadamard& op) { op.into = aliased(op.from, bf16(3, 128)); },
};

constexpr GoldenText kTurnErrors{
    "Ops/Hadamard/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(Hadamard, FollowsItsDefinition) {
  Seeded random;
  const auto real = [&] { return oneOf(random, {DType::f32, DType::f16, DType::bf16}); };
  std::vector<HadamardCase> cases;
  for (uint64_t length : everyLength()) {
    for (const auto& signs : signsAt(length)) {
      for (uint64_t round = 0; round < 8; ++round) {
        HadamardCase turn{.length = length,
                          .vectors = length > 512 ? 1 : 1 + random.below(9),
                          .from = round < 2 ? DType::f32 : real(),
                          .signs = signs,
                          .isInverse = round % 2 == 1,
                          .shift = random.below(3)};
        if (coin(random, 2, 3)) turn.into = round < 2 ? DType::f32 : real();
        if (length == 112 && round == 0 && !signs) turn.vectors = 2341;  // enough for a lane to hold more of each
        turn.name = fmt::format("{} of {}{}, signs {}, {} to {}, {} off", turn.vectors, length,
                                turn.isInverse ? ", inverse" : "", signs ? name(*signs) : "none", name(turn.from),
                                turn.into ? name(*turn.into) : "itself", turn.shift);
        cases.push_back(turn);
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

TEST(HadamardRules, EachHasItsError) {
  expectRules<Hadamard>(kTurnErrors, hadamardRules(), soundTurn(), kBrokenTurns);
}

TEST(HadamardRules, ATargetThatIsTheSourceIsWorkInPlace) {
  Hadamard op = soundTurn();
  op.into = op.from;
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.dispatches.at(0).buffers.size(), 1u);
  op.into.reset();
  EXPECT_EQ(REQUIRE(plan(op)).text(), planned.text());
}

}  // namespace mnk::test
