// Every rule of MergePartials, broken on purpose, and its plan.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MergePartials/MergePartials.hpp"

namespace mnk::test {

namespace {

// Five parts of three rows and four heads.
MergePartials soundMerge() {
  return {.parts = {.sums = f32(5, 3, 4, 64), .stats = f32(5, 3, 4, 2)},
          .sinks = f32(4),
          .results = {.output = f16(3, 4, 64)}};
}

void mergeIntoPartials(MergePartials& op) {
  op.sinks.reset();
  op.results = {.partials = AttentionPartials{.sums = f32(3, 4, 64), .stats = f32(3, 4, 2)}};
}

void useParts(MergePartials& op, uint64_t parts) {
  op.parts = {.sums = f32(parts, 3, 4, 64), .stats = f32(parts, 3, 4, 2)};
}

void useHeadDim(MergePartials& op, uint64_t headDim) {
  op.parts.sums = f32(5, 3, 4, headDim);
  op.results.output = f16(3, 4, headDim);
}

const Break<MergePartials> kBrokenMerges[] = {
    [](MergePartials& op) { op.parts.sums = {}; },
    [](MergePartials& op) { op.parts.stats = {}; },
    [](MergePartials& op) { op.parts.sums = f32(4, 64); },
    [](MergePartials& op) { op.parts.sums = f16(5, 3, 4, 64); },
    [](MergePartials& op) { op.parts.stats = f32(4, 3, 4, 2); },
    [](MergePartials& op) { useParts(op, 0); },
    [](MergePartials& op) { useParts(op, 1025); },
    [](MergePartials& op) { useHeadDim(op, 44); },
    [](MergePartials& op) { useHeadDim(op, 528); },
    [](MergePartials& op) { useHeadDim(op, 0); },
    [](MergePartials& op) { op.parts.sums = f32(1, k2To31, 4, 64), op.parts.stats = f32(1, k2To31, 4, 2); },
    [](MergePartials& op) { op.results.output.reset(); },
    [](MergePartials& op) { mergeIntoPartials(op), op.results.output = f16(3, 4, 64); },
    [](MergePartials& op) { op.results.output = Tensor(); },
    [](MergePartials& op) { op.results.output = f16(3, 4, 32); },
    [](MergePartials& op) { mergeIntoPartials(op), op.results.partials->stats = f32(5, 3, 4, 2); },
    [](MergePartials& op) { op.results.logSumExp = f16(3, 4); },
    [](MergePartials& op) { op.sinks = f32(3); },
    [](MergePartials& op) { mergeIntoPartials(op), op.sinks = f32(4); },
    [](MergePartials& op) { op.results.logSumExp = aliased(op.parts.stats, f32(3, 4)); },
    [](MergePartials& op) { mergeIntoPartials(op), op.results.partials->sums = aliased(op.parts.sums, f32(3, 4, 64)); },
};

constexpr GoldenText kMergeErrors{
    "Ops/MergePartials/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(MergePartialsRules, EachHasItsError) {
  expectRules<MergePartials>(kMergeErrors, mergePartialsRules(), soundMerge(), kBrokenMerges);
}

TEST(MergePartialsRules, NothingToMergeIsNoDispatch) {
  const MergePartials op{.parts = {.sums = f32(5, 0, 4, 64), .stats = f32(5, 0, 4, 2)},
                         .results = {.output = f16(0, 4, 64)}};
  EXPECT(REQUIRE(plan(op)).dispatches.empty());
}

TEST(MergePartialsPlan, ReadsEachPartOnce) {
  for (const uint64_t parts : {1, 2, 1024}) {
    MergePartials op = soundMerge();
    useParts(op, parts);
    op.sinks.reset();
    const Plan planned = REQUIRE(plan(op));
    EXPECT(planned.op == "MergePartials" && planned.dispatches.size() == 1 && planned.scratchBytes == 0);
    const Dispatch& dispatch = planned.dispatches.at(0);
    EXPECT_EQ(dispatch.kind, "MergePartials");
    EXPECT_EQ(dispatch.countedBytesRead(), parts * 3 * 4 * 66 * 4);
    EXPECT_EQ(dispatch.countedBytesWritten(), 3u * 4 * 64 * 2);
  }
}

}  // namespace mnk::test
