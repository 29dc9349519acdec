// KVCacheQuantize on every device against the reference, and what it, KVCacheDequantize and Hadamard ask a device to
// run.
#include <algorithm>
#include <set>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheQuantizeCase.hpp"
#include "Ops/Common/KernelForms.hpp"
#include "Ops/Common/StoredVector.hpp"

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

void touchPlane(TouchedBytes& touched, const KVCacheQuantize& op, const HeadsView& source,
                const QuantizedKVPlane& plane) {
  const KVCodecSizes size = plane.vectorSizes();
  const uint64_t bytes = plane.headDim() * byteSize(source.tensor.dtype());
  for (const auto& [place, token] : winners(placesOf(op), {})) {
    for (uint64_t head = 0; head < op.into.codes().heads(); ++head) {
      const uint64_t first = sourceElement(source, op.sourceLayout, token, head);
      const uint64_t row = cacheRow(op.into.codes(), place, head);
      touched.reads(source.tensor, first * byteSize(source.tensor.dtype()), bytes);
      touched.writes(plane.codes, row * size.codeBytes, size.codeBytes);
      if (!plane.isDense()) touched.writes(plane.scales, row * size.scaleBytes, size.scaleBytes);
    }
  }
  for (const auto* factors : {&plane.means, &plane.channelScales}) {
    if (*factors) touched.reads(**factors, 0, (*factors)->byteCount());
  }
}

constexpr GoldenText kPlans{
    "Ops/KVCacheQuantize/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(KVCacheQuantize, FollowsTheReference) {
  const std::vector<KVCacheQuantizeCase> cases = drawnQuantizes(kDrawnQuantizes);
  std::vector<DrawnCoding> seen;
  for (const KVCacheQuantizeCase& quantize : cases) {
    const KVCacheWriteCase& write = quantize.write;
    if (write.sourceTokens == 0 || write.heads == 0) continue;
    if (!quantize.hasDenseKeys) seen.push_back({quantize.keyCodec, write.headDim});
    if (!quantize.hasDenseValues) seen.push_back({quantize.valueCodec, write.valueHeadDim});
  }
  EXPECT_EQ(codingsOtherThan(seen), std::vector<std::string>());
  runOnEveryDevice(cases);
}
TEST(KVCacheQuantize, SharesManyVectorsAmongFewerLanes) {
  runOnEveryDevice(manyVectorsCases());
}
TEST(KVCacheQuantize, ProbeReturnsNormalizedElements) {
  runOnEveryDevice(probeCases());
}

TEST(KVCacheQuantizePlan, CasesReachEveryKernelAndDeclareTheirBytes) {
  KernelForms reached;
  uint32_t empty = 0, exact = 0;
  for (const KVCacheQuantizeCase& quantize : allCases()) {
    const Context context(quantize.name);
    const KVCacheQuantize op = planOp(quantize);
    const Plan planned = REQUIRE(plan(op));
    reached.add(planned);
    EXPECT(planned.dispatches.size() <= 1);
    EXPECT_EQ(planned.scratchBytes, 0u);
    empty += planned.dispatches.empty();
    if (quantize.write.areSequencesTensor || quantize.write.arePositionsTensor) continue;  // which may go anywhere
    EXPECT_EQ(planned.dispatches.empty(), winners(placesOf(op), {}).empty() || quantize.write.heads == 0);
    if (planned.dispatches.empty()) continue;
    TouchedBytes touched;
    touchPlane(touched, op, op.keys, op.into.keys);
    if (op.values) touchPlane(touched, op, *op.values, *op.into.values);
    if (op.counts) touched.reads(*op.counts, 0, 8), touched.writes(*op.counts, 0, 8);
    if (op.probe) touched.writes(*op.probe, 0, op.probe->byteCount());
    touched.expectWrites(planned);
    if (quantize.write.rows) continue;  // which may name a source token that another replaces
    touched.expectReads(planned);
    ++exact;
  }
  EXPECT(empty > 5);
  EXPECT(exact > 200);
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
