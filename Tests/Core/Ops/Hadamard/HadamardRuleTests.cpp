// Every rule of Hadamard, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Hadamard/HadamardRules.hpp"

namespace mnk::test {

namespace {

using Op = Hadamard;

constexpr std::string_view kLengths = "a last axis that is a power of two from 4 to 4096, or 80, 96, 112 or 192";
constexpr std::string_view kPad = "Reshape the tensor, or pad its vectors.";

Op soundOp() {
  return {
      .from = planTensor(DType::f16, {3, 128}), .into = planTensor(DType::f32, {3, 128}), .signs = KVCodecName::turbo};
}

const BrokenRule<Op> kBroken[] = {
    {"a tensor has no memory", "a source without memory", "tensors with memory",
     "Make the tensors before turning them.", [](Op& op) { op.from = {}; }},
    {"a tensor has no memory", "a target without memory", "tensors with memory",
     "Make the tensors before turning them.", [](Op& op) { op.into = Tensor(); }},
    {"the tensors are not of floats", "u8", "f32, f16 or bf16", "Convert the tensor.",
     [](Op& op) {
       op.into = planTensor(DType::u8, {3, 128});
     }},
    {"vectors have no length that can be turned", "[3, 48]", kLengths, kPad,
     [](Op& op) {
       op.from = planTensor(DType::f16, {3, 48});
     }},
    {"vectors have no length that can be turned", "[3, 96]", "a last axis that is a power of two from 4 to 4096", kPad,
     [](Op& op) {
       op.from = planTensor(DType::f16, {3, 96});
       op.signs = KVCodecName::mlx1;
     }},
    {"vectors have no length that can be turned", "[3, 2]", kLengths, kPad,
     [](Op& op) {
       op.from = planTensor(DType::f16, {3, 2});
     }},
    {"vectors have no length that can be turned", "[8192]", kLengths, kPad,
     [](Op& op) { op.from = planTensor(DType::f16, {8192}); }},
    {"vectors have no length that can be turned", "[3, 0]", kLengths, kPad,
     [](Op& op) {
       op.from = planTensor(DType::f16, {3, 0});
     }},
    {"the codec has no signs for this length", "turbo, vectors of 16",
     "32, 64, 80, 96, 112, 128, 192, 256 or 512 with the signs of turbo",
     "Turn vectors of a head dim that the codec has, or leave the signs out.",
     [](Op& op) {
       op.from = planTensor(DType::f16, {3, 16});
     }},
    {"the target has another shape", "[128, 3]", "[3, 128]", "Give both one shape.",
     [](Op& op) {
       op.into = planTensor(DType::f32, {128, 3});
     }},
    {"there are too many vectors", "2147483648", "less than 2^31", "Turn a part of the tensor at a time.",
     [](Op& op) {
       op.from = planTensor(DType::f16, {uint64_t{1} << 31, 128});
       op.into.reset();
     }},
    {"source and target overlap without being the same", "a target that shares a part of the source's memory",
     "separate memory, or the same tensor", "Leave the target out to turn vectors in place.",
     [](Op& op) {
       const auto buffer = planTensor(DType::f16, {4, 128}).buffer();
       op.from = REQUIRE(Tensor::over(buffer, DType::f16, REQUIRE(Shape::make({3, 128}))));
       op.into = REQUIRE(Tensor::over(buffer, DType::f16, REQUIRE(Shape::make({3, 128})), 256));
     }},
    {"source and target overlap without being the same", "a target that shares a part of the source's memory",
     "separate memory, or the same tensor", "Leave the target out to turn vectors in place.",
     [](Op& op) {
       op.into = REQUIRE(Tensor::over(op.from.buffer(), DType::bf16, REQUIRE(Shape::make({3, 128}))));
     }},
};

}  // namespace

TEST(HadamardRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(hadamardRules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<Op>(hadamardRules(), kBroken);
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
