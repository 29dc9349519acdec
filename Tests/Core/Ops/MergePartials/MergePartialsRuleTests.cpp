// Every rule of MergePartials, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MergePartials/MergePartialsRules.hpp"

namespace mnk::test {

namespace {

using Op = MergePartials;

// Five parts of three rows and four heads.
Op soundOp() {
  return {.partials = {.sums = f32(5, 3, 4, 64), .stats = f32(5, 3, 4, 2)},
          .sinks = f32(4),
          .results = {.into = f16(3, 4, 64)}};
}

void usePartials(Op& op) {
  op.sinks.reset();
  op.results = {.partials = AttentionPartials{.sums = f32(3, 4, 64), .stats = f32(3, 4, 2)}};
}

void useParts(Op& op, uint64_t parts) {
  op.partials = {.sums = f32(parts, 3, 4, 64), .stats = f32(parts, 3, 4, 2)};
}

void useHeadDim(Op& op, uint64_t headDim) {
  op.partials.sums = f32(5, 3, 4, headDim);
  op.results.into = f16(3, 4, headDim);
}

const Break<Op> kBroken[] = {
    [](Op& op) { op.partials.sums = {}; },
    [](Op& op) { op.partials.stats = {}; },
    [](Op& op) { op.partials.sums = f32(4, 64); },
    [](Op& op) { op.partials.sums = f16(5, 3, 4, 64); },
    [](Op& op) { op.partials.stats = f32(4, 3, 4, 2); },
    [](Op& op) { useParts(op, 0); },
    [](Op& op) { useParts(op, 1025); },
    [](Op& op) { useHeadDim(op, 44); },
    [](Op& op) { useHeadDim(op, 528); },
    [](Op& op) { useHeadDim(op, 0); },
    [](Op& op) { op.partials.sums = f32(1, k2To31, 4, 64), op.partials.stats = f32(1, k2To31, 4, 2); },
    [](Op& op) { op.results.into.reset(); },
    [](Op& op) { usePartials(op), op.results.into = f16(3, 4, 64); },
    [](Op& op) { op.results.into = Tensor(); },
    [](Op& op) { op.results.into = f16(3, 4, 32); },
    [](Op& op) { usePartials(op), op.results.partials->stats = f32(5, 3, 4, 2); },
    [](Op& op) { op.results.logSumExp = f16(3, 4); },
    [](Op& op) { op.sinks = f32(3); },
    [](Op& op) { usePartials(op), op.sinks = f32(4); },
    [](Op& op) { op.results.logSumExp = aliased(op.partials.stats, f32(3, 4)); },
    [](Op& op) { usePartials(op), op.results.partials->sums = aliased(op.partials.sums, f32(3, 4, 64)); },
};

constexpr GoldenText kGolden{
    "Ops/MergePartials/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(MergePartialsRules, EachHasItsError) {
  ErrorLines errors;
  expectRules<Op>(errors, mergePartialsRules(), Op::name, soundOp(), kBroken, [](const Op& op) { return plan(op); });
  expectGolden(kGolden, errors.lines());
}

TEST(MergePartialsRules, NothingToMergeIsNoDispatch) {
  const Op op{.partials = {.sums = f32(5, 0, 4, 64), .stats = f32(5, 0, 4, 2)}, .results = {.into = f16(0, 4, 64)}};
  EXPECT(REQUIRE(plan(op)).dispatches.empty());
}

}  // namespace mnk::test
