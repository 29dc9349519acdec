// What KVCacheQuantize, KVCacheDequantize and Hadamard ask a device to run, without a device.
#include <algorithm>
#include <map>
#include <set>

#include "Harness/Check.hpp"
#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheQuantize/KVCacheQuantizeTypes.h"
#include "KVCacheQuantizeRun.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteReference.hpp"

namespace mnk::test {

namespace {

std::vector<KVCacheQuantizeCase> allCases() {
  std::vector<KVCacheQuantizeCase> all = drawnQuantizes(kDrawnQuantizes);
  for (auto make : {codecCases, probeCases, manyVectorsCases}) {
    const auto cases = make();
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

KVCacheQuantize planOp(const KVCacheQuantizeCase& quantize) {
  return makeOp(quantize, [](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return planTensor(dtype, shape, shift);
  });
}

std::map<Place, uint64_t> winnersOf(const KVCacheQuantizeCase& quantize, const KVCacheQuantize& op) {
  std::vector<uint32_t> sequences, positions;
  if (quantize.write.rows) {
    for (const auto& row : *quantize.write.rows) sequences.push_back(row.sequence), positions.push_back(row.position);
  }
  return winners(placesOf(op), sequences, positions);
}

void expectDeclared(std::string_view name, const Dispatch& dispatch, const Tensor& tensor,
                    const std::vector<bool>& read, const std::vector<bool>& written) {
  const Binding* binding = bindingOf(dispatch, tensor);
  if (!binding) return fail(__FILE__, __LINE__, fmt::format("{}: not bound", name));
  EXPECT_EQ(binding->offset, tensor.byteOffset());
  EXPECT_EQ(binding->length, tensor.byteCount());
  expectCovers(fmt::format("{} read", name), binding->reads, read);
  expectCovers(fmt::format("{} written", name), binding->writes, written);
}

void expectPlane(std::string_view name, const Dispatch& dispatch, const KVCacheQuantize& op, const HeadsView& source,
                 const QuantizedKVPlane& plane, const std::map<Place, uint64_t>& tokens) {
  const KVCacheWrite places = placesOf(op);
  const uint64_t heads = places.into.heads();
  const uint64_t capacity = places.into.capacity();
  const uint64_t elementBytes = byteSize(source.tensor.dtype());
  std::vector<bool> read(source.tensor.byteCount());
  std::vector<uint64_t> cacheRows;
  for (const auto& [place, token] : tokens) {
    for (uint64_t head = 0; head < heads; ++head) {
      const auto first =
          read.begin() + static_cast<ptrdiff_t>(sourceElement(source, op.sourceLayout, token, head) * elementBytes);
      std::fill_n(first, plane.headDim() * elementBytes, true);
      cacheRows.push_back(op.into.layout == KVLayout::headMajor
                              ? (place.sequence * heads + head) * capacity + place.slot
                              : (place.sequence * capacity + place.slot) * heads + head);
    }
  }
  const auto none = [](const Tensor& tensor) { return std::vector<bool>(tensor.byteCount()); };
  const auto all = [](const Tensor& tensor) { return std::vector<bool>(tensor.byteCount(), true); };
  KVCodecSizes size{.codeBytes = plane.headDim() * byteSize(plane.codes.dtype())};
  if (!plane.isDense()) size = REQUIRE(sizes(plane.codec, plane.headDim()));
  const auto text = [&](std::string_view part) { return fmt::format("{} {}", name, part); };
  const Binding* from =
      sourceBindingOf(dispatch, name == "key" ? kKVCacheQuantizeKeys : kKVCacheQuantizeValues, source);
  if (!from) return fail(__FILE__, __LINE__, text("source is not bound"));
  expectCovers(text("source read"), from->reads, boundPart(*from, source, read));
  EXPECT(from->writes.empty());
  expectDeclared(text("codes"), dispatch, plane.codes, none(plane.codes),
                 marked(plane.codes, size.codeBytes, cacheRows));
  if (!plane.isDense()) {
    expectDeclared(text("scales"), dispatch, plane.scales, none(plane.scales),
                   marked(plane.scales, size.scaleBytes, cacheRows));
  }
  if (plane.means) expectDeclared(text("means"), dispatch, *plane.means, all(*plane.means), none(*plane.means));
  if (!plane.channelScales) return;
  expectDeclared(text("channel scales"), dispatch, *plane.channelScales, all(*plane.channelScales),
                 none(*plane.channelScales));
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
    const auto tokens = winnersOf(quantize, op);
    const bool isKnown = !quantize.write.areSequencesTensor && !quantize.write.arePositionsTensor;
    if (isKnown) EXPECT_EQ(planned.dispatches.size(), tokens.empty() || quantize.write.heads == 0 ? 0u : 1u);
    EXPECT(planned.dispatches.size() <= 1);
    EXPECT_EQ(planned.scratchBytes, 0u);
    empty += planned.dispatches.empty();
    // Rows may name a source token that another replaces, and rows of a tensor may go anywhere.
    if (planned.dispatches.empty() || quantize.write.rows) continue;
    ++exact;
    const Dispatch& dispatch = planned.dispatches[0];
    expectPlane("key", dispatch, op, op.keys, op.into.keys, tokens);
    if (op.values) expectPlane("value", dispatch, op, *op.values, *op.into.values, tokens);
    if (op.counts) expectDeclared("counts", dispatch, *op.counts, std::vector(8, true), std::vector(8, true));
    if (op.probe) {
      const uint64_t bytes = op.probe->byteCount();
      expectDeclared("probe", dispatch, *op.probe, std::vector(bytes, false), std::vector(bytes, true));
    }
  }
  EXPECT(empty > 5);
  EXPECT(exact > 200);
}

// A kernel that only some of the cases reach could be wrong unseen: together they reach all of them, with each of its
// constants as it can be.
TEST(KVCacheQuantizePlan, CasesReachEveryKernel) {
  std::set<std::string> functions;
  std::map<uint32_t, std::set<uint32_t>> values;
  for (const KVCacheQuantizeCase& quantize : allCases()) {
    for (const Dispatch& dispatch : REQUIRE(plan(planOp(quantize))).dispatches) {
      functions.insert(dispatch.kernel.function);
      for (const FunctionConstant& constant : dispatch.kernel.constants) {
        values[constant.index].insert(constant.bits);
      }
    }
  }
  for (int chunks = 1; chunks <= 32; chunks *= 2) EXPECT(functions.contains(fmt::format("kvCacheQuantize_{}", chunks)));
  // Those of a rotation are set by RotaryAppend alone.
  const std::set<uint32_t> rotationConstants = {kKVCacheQuantizeAppliesRoPE, kRotaryAppendQueryType,
                                                kMultiRoPEHasPositions,      kMultiRoPEHasOffsets,
                                                kMultiRoPEIsInterleaved,     kMultiRoPEIsVectorized};
  for (const auto& [index, seen] : values) {
    if (rotationConstants.contains(index)) {
      EXPECT(seen == std::set<uint32_t>{0});
    } else if (seen.size() < 2) {
      fail(__FILE__, __LINE__, fmt::format("constant {} is always {}", index, *seen.begin()));
    }
  }
}

// Sources are loaded 16 bytes at a time where vectors are aligned; one dispatch serves whatever the tokens; nothing to
// do is no dispatch.
TEST(KVCacheQuantizePlan, PlansMatchTheGoldenOnes) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const auto& op) { lines.push_back(planLine(name, REQUIRE(plan(op)))); };
  const auto addFused = [&](std::string_view name, uint64_t tokens, const KVCacheWriteCase::Fused& fused) {
    add(name,
        planOp({.write = {
                    .source = DType::f16, .headDim = 64, .valueHeadDim = 32, .sourceTokens = tokens, .fused = fused}}));
  };
  addFused("side by side", 3, {});
  addFused("aligned gaps", 3, {.lead = 8, .between = 24, .tail = 16});
  addFused("a lead of 4", 3, {.lead = 4});
  addFused("odd gaps", 3, {.between = 1, .tail = 7});
  addFused("a tail of 4", 3, {.tail = 4});
  addFused("one token with a tail of 4", 1, {.tail = 4});
  for (const uint64_t tokens : {0, 1, 7, 512, 100000}) {
    add(fmt::format("{} tokens", tokens), planOp({.write = {.wrap = KVWrap::linear,
                                                            .heads = 8,
                                                            .headDim = 128,
                                                            .valueHeadDim = 64,
                                                            .capacity = 100000,
                                                            .sourceTokens = tokens},
                                                  .valueCodec = {.bits = 3}}));
  }
  add("0 of 3 tokens", planOp({.write = {.headDim = 64, .valueHeadDim = 64, .sourceTokens = 3, .tokens = 0}}));
  add("rows of tensors", planOp({.write = {.headDim = 128,
                                           .valueHeadDim = 0,
                                           .sequences = 3,
                                           .sourceTokens = 2,
                                           .rows = {{{2, 1}, {0, 3}}},
                                           .areSequencesTensor = true,
                                           .arePositionsTensor = true}}));
  const QuantizedKVCacheView made =
      planOp({.write = {.headDim = 64, .valueHeadDim = 256}, .valueCodec = {.bits = 6}}).into;
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
