// What MultiRoPE asks a device to run, without a device.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/RawBytes.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "MultiRoPERun.hpp"
#include "Ops/Common/KernelForms.hpp"

namespace mnk::test {

namespace {

Dispatch rotaryDispatch(const MultiRoPE& op) {
  const Plan planned = REQUIRE(plan(op));
  EXPECT_EQ(planned.dispatches.size(), 1u);
  if (planned.dispatches.size() != 1) throw Stop{};
  return planned.dispatches[0];
}

bool staysInPlace(const MultiRoPECase& rope, RopePlacing alone) {
  return rope.placing == RopePlacing::inPlace || rope.placing == RopePlacing::inPlaceByName || rope.placing == alone;
}

// In place, elements that do not turn are left alone, and the rest is read where it is written: Metal does not allow
// that buffers of two arguments alias.
void expectOperand(std::string_view name, const Dispatch& dispatch, uint32_t index, const HeadsView& from,
                   const HeadsView& into, const std::vector<TurnedElement>& elements, bool isInPlace) {
  std::vector<uint64_t> read, written;
  for (const TurnedElement& element : elements) {
    if (isInPlace && !element.isTurned) continue;
    read.push_back(element.from);
    written.push_back(element.into);
  }
  const Binding& target = bindingAt(dispatch, index + 1);
  const Binding& source = isInPlace ? target : bindingAt(dispatch, index);
  EXPECT_EQ(source.writes.empty(), !isInPlace);
  EXPECT_EQ(target.reads.empty(), !isInPlace);
  const auto isBound = [&](const Binding& binding) { return binding.index == index; };
  EXPECT_EQ(std::any_of(dispatch.buffers.begin(), dispatch.buffers.end(), isBound), !isInPlace);
  const auto expectElements = [&](std::string_view how, const Binding& binding, const std::vector<Region>& regions,
                                  const HeadsView& view, const std::vector<uint64_t>& touched) {
    const auto bytes = marked(view.tensor, byteSize(view.tensor.dtype()), touched);
    expectCovers(fmt::format("{} {}", name, how), regions, boundPart(binding, view, bytes));
  };
  expectElements("read", source, source.reads, from, read);
  expectElements("written", target, target.writes, into, written);
}

std::vector<RotaryFrequency> boundFrequencies(const Dispatch& dispatch) {
  for (const InlineBytes& inlined : dispatch.inlines) {
    if (inlined.index == kMultiRoPEFrequencies) return numbersIn<RotaryFrequency>(inlined.bytes);
  }
  return {};
}

constexpr GoldenText kRotaryPlans{
    "Ops/MultiRoPE/Plans.inc",
#include "Plans.inc"
};

}  // namespace

TEST(MultiRoPEPlan, DeclaresExactlyTheBytesThatTheReferenceTouches) {
  uint32_t wholes = 0;
  for (const MultiRoPECase& rope : rope::drawnCases(rope::kDraws)) {
    const Context context(rope.name);
    const MultiRoPE op = planOp(rope);
    const MultiRoPEOutcome expected =
        reference(op, [](const Tensor& tensor) { return std::vector<std::byte>(tensor.byteCount()); });
    const Plan planned = REQUIRE(plan(op));
    const bool queriesStay = staysInPlace(rope, RopePlacing::queriesStay);
    const bool keysStay = staysInPlace(rope, RopePlacing::keysStay);
    const bool isSplit = op.keys && queriesStay != keysStay;
    EXPECT_EQ(planned.dispatches.size(), rope.totalTokens() == 0 ? 0u : (isSplit ? 2u : 1u));
    if (planned.dispatches.empty()) continue;
    for (const Dispatch& dispatch : planned.dispatches) EXPECT_EQ(dispatch.grid.extent[2], rope.totalTokens());
    // Many vectors that lie scattered are declared as a whole.
    const auto isCounted = [](const Dispatch& dispatch) { return dispatch.bytesRead || dispatch.bytesWritten; };
    const bool isWhole = std::any_of(planned.dispatches.begin(), planned.dispatches.end(), isCounted);
    wholes += isWhole;
    if (isWhole) continue;
    expectOperand("queries", planned.dispatches.front(), kMultiRoPEQueries, op.queries,
                  op.rotatedQueries ? *op.rotatedQueries : op.queries, expected.queries, queriesStay);
    if (!op.keys) continue;
    expectOperand("keys", planned.dispatches.back(), isSplit ? kMultiRoPEQueries : kMultiRoPEKeys, *op.keys,
                  op.rotatedKeys ? *op.rotatedKeys : *op.keys, expected.keys, keysStay);
  }
  EXPECT(wholes < rope::kDraws / 50);
}

// Each function with each of its constants both ways, but what changes its dtype cannot stay in place; and pairs of
// both kinds, by four and one by one, with one head or several for a thread.
TEST(MultiRoPEPlan, CasesReachEveryKernel) {
  KernelForms reached;
  std::set<std::array<uint32_t, 3>> forms;
  for (const MultiRoPECase& rope : rope::drawnCases(rope::kDraws)) {
    const Plan planned = REQUIRE(plan(planOp(rope)));
    reached.add(planned);
    for (const Dispatch& dispatch : planned.dispatches) {
      const auto& constants = dispatch.kernel.constants;
      const auto params = numbersIn<MultiRoPEParams>(dispatch.inlines.at(0).bytes).at(0);
      forms.insert({constants[5].bits, constants[6].bits, params.headsPerGroup > 1});
    }
  }
  EXPECT_EQ(forms.size(), 8u);
  EXPECT_EQ(reached.functions().size(), 9u);
  for (const char* from : {"f32", "f16", "bf16"}) {
    for (const char* into : {"f32", "f16", "bf16"}) {
      const bool isSame = std::string_view(from) == into;
      const auto fixed = reached.fixedConstants(fmt::format("multiRoPE_{}_{}", from, into));
      EXPECT(fixed == (isSame ? std::set<uint32_t>() : std::set<uint32_t>{kMultiRoPEIsOutOfPlace}));
    }
  }
}

// One radian is 0.159154943091895335768... turns.
TEST(MultiRoPEPlan, FrequenciesAreFractionsOfATurnWithTheirAxis) {
  MultiRoPE op{.queries = f16(1, 6), .rotary = {.base = 1}};
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op)).size(), 3u);
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op))[2].high, 0x28be60dbu);
  // Double has 53 bits, of which the last 11 or so are not there.
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op))[2].low >> 12, 0x9391054au >> 12);
  op.rotary = {.layout = RotaryEmbedding::Layout::mrope, .sections = {0, 1, 1, 1}, .base = 1};
  const auto axes = boundFrequencies(rotaryDispatch(op));
  EXPECT_EQ(axes[0].low & 3, 1u);
  EXPECT_EQ(axes[1].low & 3, 2u);
  EXPECT_EQ(axes[2].low & 3, 3u);
  // Whole turns do not matter: seven radians are 1.114 turns.
  op.rotary = {.base = 1, .scale = 7};
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op))[0].high, static_cast<uint32_t>((7 / 6.283185307179586 - 1) * 0x1p32));
  op.rotary = {.base = 1, .frequencyFactors = {INFINITY, 1, 1}};
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op))[0].high, 0u);
  EXPECT_EQ(boundFrequencies(rotaryDispatch(op))[0].low, 0u);
}

// Four pairs a thread where alignment allows; heads share a thread where there are many tokens; keys that are unlike
// queries have a dispatch of their own; scattered vectors are declared as a whole, and what moves is counted.
TEST(MultiRoPEPlan, PlansMatchTheGoldenOnes) {
  const auto strided = [](uint64_t offset, uint64_t tokenStride) {
    return HeadsView(
        f16(1000),
        {.tokens = 2, .heads = 2, .headDim = 64, .offset = offset, .tokenStride = tokenStride, .headStride = 64});
  };
  const HeadsView scattered(f16(90 * 301),
                            {.tokens = 100, .heads = 90, .headDim = 2, .tokenStride = 3, .headStride = 301});
  const HeadsView largest(f16(128, k2To31 - 1, 512), KVLayout::headMajor);
  const Tensor aligned = f16(2, 2, 64);
  const std::vector<int32_t> list(6, -1), pair{5, 6};
  const std::pair<const char*, MultiRoPE> cases[] = {
      {"aligned", {.queries = aligned}},
      {"an element off", {.queries = planTensor(DType::f16, {2, 2, 64}, 2)}},
      {"four elements off", {.queries = planTensor(DType::f16, {2, 2, 64}, 8)}},
      {"f32 four elements off", {.queries = planTensor(DType::f32, {2, 2, 64}, 16)}},
      {"f32 two elements off", {.queries = planTensor(DType::f32, {2, 2, 64}, 8)}},
      {"an offset of four", {.queries = strided(4, 128)}},
      {"an offset of two", {.queries = strided(2, 128)}},
      {"tokens apart by a multiple of four", {.queries = strided(0, 132)}},
      {"tokens apart by something else", {.queries = strided(0, 130)}},
      {"a head dim of 12", {.queries = f16(2, 2, 12)}},
      {"a rope dim of 12", {.queries = aligned, .rotary = {.ropeDim = 12}}},
      {"a rope dim of 16", {.queries = aligned, .rotary = {.ropeDim = 16}}},
      {"the rest is copied", {.queries = aligned, .rotatedQueries = f16(2, 2, 64), .rotary = {.ropeDim = 16}}},
      {"keys hold queries back", {.queries = aligned, .keys = planTensor(DType::f16, {2, 1, 64}, 2)}},
      {"results hold queries back", {.queries = aligned, .rotatedQueries = planTensor(DType::f32, {2, 2, 64}, 4)}},
      {"1 token", {.queries = f16(1, 20, 64), .keys = f16(1, 3, 64)}},
      {"63 tokens", {.queries = f16(63, 20, 64), .keys = f16(63, 3, 64)}},
      {"64 tokens", {.queries = f16(64, 20, 64), .keys = f16(64, 3, 64)}},
      {"100 tokens", {.queries = f16(100, 20, 64), .keys = f16(100, 3, 64)}},
      {"1000 tokens", {.queries = f16(1000, 20, 64), .keys = f16(1000, 3, 64)}},
      {"lists", {.queries = f16(2, 3, 4, 128), .positions = list, .offsets = pair}},
      {"keys unlike queries", {.queries = f32(3, 4, 16), .keys = f32(3, 2, 16), .rotatedKeys = f16(3, 2, 16)}},
      {"both alike",
       {.queries = f32(3, 4, 16),
        .keys = f32(3, 2, 16),
        .rotatedQueries = f16(3, 4, 16),
        .rotatedKeys = f16(3, 2, 16)}},
      {"the largest tensor", {.queries = largest}},
      {"scattered", {.queries = scattered}},
  };
  std::vector<std::string> lines;
  for (const auto& [name, op] : cases) lines.push_back(planLine(name, REQUIRE(plan(op))));
  expectGolden(kRotaryPlans, lines);
}

}  // namespace mnk::test
