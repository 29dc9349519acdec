// Every rule of MergePartials, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MergePartials/MergePartialsRules.hpp"

namespace mnk::test {

namespace {

using Op = MergePartials;

// Five parts of three rows and four heads.
Op soundOp() {
  return {.partials = {.sums = planTensor(DType::f32, {5, 3, 4, 64}), .stats = planTensor(DType::f32, {5, 3, 4, 2})},
          .sinks = planTensor(DType::f32, {4}),
          .results = {.into = planTensor(DType::f16, {3, 4, 64})}};
}

void usePartials(Op& op) {
  op.sinks.reset();
  op.results = {.partials = AttentionPartials{.sums = planTensor(DType::f32, {3, 4, 64}),
                                              .stats = planTensor(DType::f32, {3, 4, 2})}};
}

void useParts(Op& op, uint64_t parts) {
  op.partials = {.sums = planTensor(DType::f32, {parts, 3, 4, 64}), .stats = planTensor(DType::f32, {parts, 3, 4, 2})};
}

void useHeadDim(Op& op, uint64_t headDim) {
  op.partials.sums = planTensor(DType::f32, {5, 3, 4, headDim});
  op.results.into = planTensor(DType::f16, {3, 4, headDim});
}

constexpr std::string_view kSumsDue =
    "f32 [parts, heads, headDim], with axes of rows and sequences after the parts or without";
constexpr std::string_view kSumsFix = "Put an axis of parts before those that FlashDecode writes.";
constexpr std::string_view kAxes = "Give results the axes of the partials but for the parts.";

const BrokenRule<Op> kBroken[] = {
    {"the partials have no memory", "sums without memory", "tensors with memory",
     "Make the partials with FlashDecode first.", [](Op& op) { op.partials.sums = {}; }},
    {"the partials have no memory", "stats without memory", "tensors with memory",
     "Make the partials with FlashDecode first.", [](Op& op) { op.partials.stats = {}; }},
    {"the sums have the wrong dtype or rank", "f32 [4, 64]", kSumsDue, kSumsFix,
     [](Op& op) {
       op.partials.sums = planTensor(DType::f32, {4, 64});
     }},
    {"the sums have the wrong dtype or rank", "f16 [5, 3, 4, 64]", kSumsDue, kSumsFix,
     [](Op& op) {
       op.partials.sums = planTensor(DType::f16, {5, 3, 4, 64});
     }},
    {"the stats do not match the sums", "f32 [4, 3, 4, 2]", "f32 [5, 3, 4, 2]",
     "Pass the stats that were written with the sums.",
     [](Op& op) {
       op.partials.stats = planTensor(DType::f32, {4, 3, 4, 2});
     }},
    {"there is nothing to merge, or too much", "0 parts", "1 to 1024", "Merge some parts to partials first.",
     [](Op& op) { useParts(op, 0); }},
    {"there is nothing to merge, or too much", "1025 parts", "1 to 1024", "Merge some parts to partials first.",
     [](Op& op) { useParts(op, 1025); }},
    {"the head dim cannot be merged", "44", "a multiple of 8 up to 256, or of 16 up to 512", "Pad the sums with zeros.",
     [](Op& op) { useHeadDim(op, 44); }},
    {"the head dim cannot be merged", "528", "a multiple of 8 up to 256, or of 16 up to 512",
     "Pad the sums with zeros.", [](Op& op) { useHeadDim(op, 528); }},
    {"the head dim cannot be merged", "0", "a multiple of 8 up to 256, or of 16 up to 512", "Pad the sums with zeros.",
     [](Op& op) { useHeadDim(op, 0); }},
    {"an extent is too large for the kernel", "8589934592 rows", "less than 2^31",
     "Merge a part of the rows at a time.",
     [](Op& op) {
       op.partials.sums = planTensor(DType::f32, {1, uint64_t{1} << 31, 4, 64});
       op.partials.stats = planTensor(DType::f32, {1, uint64_t{1} << 31, 4, 2});
     }},
    {"attention has no target, or two", "neither results nor partials", "a tensor for results, or for partials",
     "Pass either `into` or `partials`.", [](Op& op) { op.results.into.reset(); }},
    {"attention has no target, or two", "results and partials", "a tensor for results, or for partials",
     "Pass either `into` or `partials`.",
     [](Op& op) {
       usePartials(op);
       op.results.into = planTensor(DType::f16, {3, 4, 64});
     }},
    {"a result has no memory", "a tensor without memory", "tensors with memory", "Make the tensors that results go to.",
     [](Op& op) { op.results.into = Tensor(); }},
    {"a result does not match the partials", "results f16 [3, 4, 32]", "f32, f16 or bf16 [3, 4, 64]", kAxes,
     [](Op& op) {
       op.results.into = planTensor(DType::f16, {3, 4, 32});
     }},
    {"a result does not match the partials", "stats f32 [5, 3, 4, 2]", "f32 [3, 4, 2]", kAxes,
     [](Op& op) {
       usePartials(op);
       op.results.partials->stats = planTensor(DType::f32, {5, 3, 4, 2});
     }},
    {"a result does not match the partials", "logSumExp f16 [3, 4]", "f32 [3, 4]", kAxes,
     [](Op& op) {
       op.results.logSumExp = planTensor(DType::f16, {3, 4});
     }},
    {"sinks do not match the partials", "f32 [3]", "f32 [4]", "Pass a sink for each head.",
     [](Op& op) { op.sinks = planTensor(DType::f32, {3}); }},
    {"partials cannot have sinks", "sinks, and partials as the target", "sinks once, where all parts are merged",
     "Pass sinks where results are made.",
     [](Op& op) {
       usePartials(op);
       op.sinks = planTensor(DType::f32, {4});
     }},
    {"operands share memory", "the parts' stats overlapping logSumExp", "separate memory",
     "Write results to memory of their own.",
     [](Op& op) {
       op.results.logSumExp =
           REQUIRE(Tensor::over(op.partials.stats.buffer(), DType::f32, REQUIRE(Shape::make({3, 4}))));
     }},
    {"operands share memory", "the parts' sums overlapping sums", "separate memory",
     "Write results to memory of their own.",
     [](Op& op) {
       usePartials(op);
       op.results.partials->sums =
           REQUIRE(Tensor::over(op.partials.sums.buffer(), DType::f32, REQUIRE(Shape::make({3, 4, 64}))));
     }},
};

}  // namespace

TEST(MergePartialsRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(mergePartialsRules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<Op>(mergePartialsRules(), kBroken);
}

TEST(MergePartialsRules, NothingToMergeIsNoDispatch) {
  const Op op{
      .partials = {.sums = planTensor(DType::f32, {5, 0, 4, 64}), .stats = planTensor(DType::f32, {5, 0, 4, 2})},
      .results = {.into = planTensor(DType::f16, {0, 4, 64})}};
  EXPECT(REQUIRE(plan(op)).dispatches.empty());
}

}  // namespace mnk::test
