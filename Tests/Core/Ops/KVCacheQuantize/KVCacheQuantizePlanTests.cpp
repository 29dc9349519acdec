// What KVCacheQuantize, KVCacheDequantize and Hadamard ask a device to run, without a device.
#include <algorithm>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheQuantizeRun.hpp"
#include "Ops/Common/KernelForms.hpp"

namespace mnk::test {

namespace {

std::vector<KVCacheQuantizeCase> allCases() {
  std::vector<KVCacheQuantizeCase> all = drawnQuantizes(kDrawnQuantizes);
  for (auto make : {probeCases, manyVectorsCases}) {
    const auto cases = make();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

void expectPlane(const Dispatch& dispatch, const KVCacheQuantize& op, bool isKeys,
                 const std::map<Place, uint64_t>& tokens) {
  const Context context(isKeys ? "keys" : "values");
  const HeadsView& source = isKeys ? op.keys : *op.values;
  const QuantizedKVPlane& plane = isKeys ? op.into.keys : *op.into.values;
  std::vector<uint64_t> elements, rows;
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < op.into.codes().heads(); ++head) {
      const uint64_t first = sourceElement(source, op.sourceLayout, token, head);
      for (uint64_t j = 0; j < plane.headDim(); ++j) elements.push_back(first + j);
      rows.push_back(cacheRow(op.into.codes(), place, head));
    }
  }
  expectSourceRead("the source", dispatch, isKeys ? kKVCacheQuantizeKeys : kKVCacheQuantizeValues, source,
                   marked(source.tensor, byteSize(source.tensor.dtype()), elements));
  const KVCodecSizes size = plane.vectorSizes();
  const auto none = [](const Tensor& tensor) { return std::vector<bool>(tensor.byteCount()); };
  expectDeclared("codes", dispatch, plane.codes, none(plane.codes), marked(plane.codes, size.codeBytes, rows));
  if (!plane.isDense()) {
    expectDeclared("scales", dispatch, plane.scales, none(plane.scales), marked(plane.scales, size.scaleBytes, rows));
  }
  for (const auto* factors : {&plane.means, &plane.channelScales}) {
    if (!*factors) continue;
    expectDeclared("factors", dispatch, **factors, std::vector((*factors)->byteCount(), true), none(**factors));
  }
}

constexpr GoldenText kPlans{
    "Ops/KVCacheQuantize/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(KVCacheQuantizePlan, IsOneDispatchThatDeclaresItsBytes) {
  uint32_t empty = 0, exact = 0;
  for (const KVCacheQuantizeCase& quantize : allCases()) {
    const Context context(quantize.name);
    const KVCacheQuantize op = planOp(quantize);
    const Plan planned = REQUIRE(plan(op));
    EXPECT(planned.dispatches.size() <= 1);
    EXPECT_EQ(planned.scratchBytes, 0u);
    empty += planned.dispatches.empty();
    if (quantize.write.areSequencesTensor || quantize.write.arePositionsTensor) continue;  // which may go anywhere
    const auto tokens = winners(placesOf(op), {});
    EXPECT_EQ(planned.dispatches.empty(), tokens.empty() || quantize.write.heads == 0);
    // Rows may name a source token that another replaces.
    if (planned.dispatches.empty() || quantize.write.rows) continue;
    ++exact;
    const Dispatch& dispatch = planned.dispatches[0];
    expectPlane(dispatch, op, true, tokens);
    if (op.values) expectPlane(dispatch, op, false, tokens);
    if (op.counts) expectDeclared("counts", dispatch, *op.counts, std::vector(8, true), std::vector(8, true));
    if (op.probe) {
      const uint64_t bytes = op.probe->byteCount();
      expectDeclared("probe", dispatch, *op.probe, std::vector(bytes, false), std::vector(bytes, true));
    }
  }
  EXPECT(empty > 5);
  EXPECT(exact > 200);
}

TEST(KVCacheQuantizePlan, CasesReachEveryKernel) {
  KernelForms reached;
  for (const KVCacheQuantizeCase& quantize : allCases()) reached.add(REQUIRE(plan(planOp(quantize))));
  EXPECT_EQ(reached.functions().size(), 6u);  // of 1 to 32 chunks
  // Those of a rotation are set by RotaryAppend alone.
  EXPECT(reached.fixedConstants() ==
         std::set<uint32_t>({kKVCacheQuantizeAppliesRoPE, kRotaryAppendQueryType, kMultiRoPEHasPositions,
                             kMultiRoPEHasOffsets, kMultiRoPEIsInterleaved, kMultiRoPEIsVectorized}));
}

// Sources are loaded 16 bytes at a time where vectors are aligned; one dispatch serves whatever the tokens; nothing to
// do is no dispatch.
TEST(KVCacheQuantizePlan, PlansMatchTheGoldenOnes) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const auto& op) { lines.push_back(planLine(name, REQUIRE(plan(op)))); };
  const auto addFused = [&](std::string_view name, uint64_t tokens, const KVCacheWriteCase::Fused& fused) {
    add(name,
        planOp<KVCacheQuantizeCase>(
            {.write = {
                 .source = DType::f16, .headDim = 64, .valueHeadDim = 32, .sourceTokens = tokens, .fused = fused}}));
  };
  addFused("side by side", 3, {});
  addFused("aligned gaps", 3, {.lead = 8, .between = 24, .tail = 16});
  addFused("a lead of 4", 3, {.lead = 4});
  addFused("odd gaps", 3, {.between = 1, .tail = 7});
  addFused("a tail of 4", 3, {.tail = 4});
  addFused("one token with a tail of 4", 1, {.tail = 4});
  for (const uint64_t tokens : {0, 1, 7, 512, 100000}) {
    add(fmt::format("{} tokens", tokens), planOp<KVCacheQuantizeCase>({.write = {.wrap = KVWrap::linear,
                                                                                 .heads = 8,
                                                                                 .headDim = 128,
                                                                                 .valueHeadDim = 64,
                                                                                 .capacity = 100000,
                                                                                 .sourceTokens = tokens},
                                                                       .valueCodec = {.bits = 3}}));
  }
  add("0 of 3 tokens",
      planOp<KVCacheQuantizeCase>({.write = {.headDim = 64, .valueHeadDim = 64, .sourceTokens = 3, .tokens = 0}}));
  add("rows of tensors", planOp<KVCacheQuantizeCase>({.write = {.headDim = 128,
                                                                .valueHeadDim = 0,
                                                                .sequences = 3,
                                                                .sourceTokens = 2,
                                                                .rows = {{{2, 1}, {0, 3}}},
                                                                .areSequencesTensor = true,
                                                                .arePositionsTensor = true}}));
  const QuantizedKVCacheView made =
      planOp<KVCacheQuantizeCase>({.write = {.headDim = 64, .valueHeadDim = 256}, .valueCodec = {.bits = 6}}).into;
  for (const uint64_t tokens : {0, 1, 3, 4}) {
    add(fmt::format("dequantize {} tokens", tokens),
        KVCacheDequantize{.from = made, .position = 3, .keys = f16(tokens, 2, 64), .values = f16(tokens, 2, 256)});
  }
  add("Hadamard", Hadamard{.from = f16(7, 3, 128), .into = f32(7, 3, 128)});
  add("Hadamard in place", Hadamard{.from = f16(7, 3, 128)});
  add("Hadamard of nothing", Hadamard{.from = f32(0, 64)});
  expectGolden(kPlans, lines);
}

}  // namespace mnk::test
