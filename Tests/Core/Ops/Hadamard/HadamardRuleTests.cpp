// Every rule of Hadamard, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Hadamard/Hadamard.hpp"

namespace mnk::test {

namespace {

using Op = Hadamard;

Op soundOp() {
  return {.from = f16(3, 128), .into = f32(3, 128), .signs = KVCodec::Name::turbo};
}

const Break<Op> kBroken[] = {
    [](Op& op) { op.from = {}; },
    [](Op& op) { op.into = Tensor(); },
    [](Op& op) { op.into = u8(3, 128); },
    [](Op& op) { op.signs = KVCodec::Name::mlx1Unrotated; },
    [](Op& op) { op.signs = KVCodec::Name::mlx1Affine4; },
    [](Op& op) { op.from = f16(3, 48); },
    [](Op& op) { op.from = f16(3, 96), op.signs = KVCodec::Name::mlx1; },
    [](Op& op) { op.from = f16(3, 2); },
    [](Op& op) { op.from = f16(8192); },
    [](Op& op) { op.from = f16(3, 0); },
    [](Op& op) { op.from = f16(3, 16); },
    [](Op& op) { op.into = f32(128, 3); },
    [](Op& op) { op.from = f16(k2To31, 128), op.into.reset(); },
    [](Op& op) { op.from = aliased(f16(4, 128), f16(3, 128)), op.into = aliased(op.from, f16(3, 128), 256); },
    [](Op& op) { op.into = aliased(op.from, bf16(3, 128)); },
};

constexpr GoldenText kGolden{
    "Ops/Hadamard/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(HadamardRules, EachHasItsError) {
  expectRules<Op>(kGolden, hadamardRules(), soundOp(), kBroken);
}

TEST(HadamardRules, ATargetThatIsTheSourceIsWorkInPlace) {
  Op op = soundOp();
  op.into = op.from;
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.dispatches.at(0).buffers.size(), 1u);
  op.into.reset();
  EXPECT_EQ(REQUIRE(plan(op)).text(), planned.text());
}

}  // namespace mnk::test
