// MultiRoPE on every device against the reference, elements that must keep their bits, and what it asks a device to
// run.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/Golden.hpp"
#include "Harness/RawBytes.hpp"
#include "MultiRoPE/MultiRoPETypes.h"
#include "MultiRoPECase.hpp"
#include "Ops/Common/KernelForms.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"

namespace mnk::test {

namespace {

bool isInPlace(const HeadsView& from, const std::optional<HeadsView>& into) {
  return !into || (into->tensor.buffer() == from.tensor.buffer() && into->resolved() == from.resolved());
}

// In place, elements that do not turn are left alone.
void touchVectors(TouchedBytes& touched, const std::vector<TurnedElement>& elements, const HeadsView& from,
                  const std::optional<HeadsView>& into) {
  const Tensor& target = into ? into->tensor : from.tensor;
  for (const TurnedElement& element : elements) {
    if (!element.isTurned && isInPlace(from, into)) continue;
    const uint64_t read = byteSize(from.tensor.dtype()), written = byteSize(target.dtype());
    touched.reads(from.tensor, element.from * read, read);
    touched.writes(target, element.into * written, written);
  }
}

constexpr GoldenText kRotaryPlans{
    "Ops/MultiRoPE/Plans.inc",
#include "Plans.inc"
};

}  // namespace

// Elements that do not turn keep their bits, NaN payloads and subnormals included.
TEST(MultiRoPE, FollowsTheReference) {
  runOnEveryDevice(rope::drawnCases(rope::kDraws));
}
TEST(MultiRoPE, FollowsTheReferenceAtItsEdges) {
  runOnEveryDevice(rope::edgeCases());
}

// For three dtypes, as four elements a thread and as one.
TEST(MultiRoPE, PositionZeroChangesNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const RotaryEmbedding::Layout layout : rope::kLayouts) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const uint64_t shift : {0, 1}) {
          const Context context(fmt::format("mode {}, {} shifted by {}", static_cast<int>(layout), name(dtype), shift));
          MultiRoPECase rope = rope::rotated("position 0", 32, rope::rotaryOf(layout, 16));
          rope.from = rope.into = dtype;
          rope.fromShift = shift;
          rope.positions = RopeNumbers::list;
          rope.firstPosition = 0;
          rope.spread = 1;
          MultiRoPERun opRun(device, rope, random);
          for (std::string_view operand : {"queries", "keys"}) {
            opRun.set(operand, plainRopeElements(random, dtype, opRun.before(operand).size() / byteSize(dtype)));
          }
          run(device, opRun.op());
          opRun.expectAsBefore();
        }
      }
    }
  });
}

// Each function with each of its constants both ways, but what changes its dtype cannot stay in place; and pairs of
// both kinds, by four and one by one, with one head or several for a thread.
TEST(MultiRoPEPlan, CasesReachEveryKernelAndDeclareTheirBytes) {
  KernelForms reached;
  std::set<std::array<uint32_t, 3>> forms;
  uint32_t wholes = 0;
  for (const MultiRoPECase& rope : rope::drawnCases(rope::kDraws)) {
    const Context context(rope.name);
    const MultiRoPE op = planOp(rope);
    const Plan planned = REQUIRE(plan(op));
    reached.add(planned);
    const bool isSplit = op.keys && isInPlace(op.queries, op.rotatedQueries) != isInPlace(*op.keys, op.rotatedKeys);
    EXPECT_EQ(planned.dispatches.size(), rope.totalTokens() == 0 ? 0u : (isSplit ? 2u : 1u));
    bool isWhole = false;
    for (const Dispatch& dispatch : planned.dispatches) {
      const auto& constants = dispatch.kernel.constants;
      const auto params = numbersIn<MultiRoPEParams>(dispatch.inlines.at(0).bytes).at(0);
      forms.insert({constants[5].bits, constants[6].bits, params.headsPerGroup > 1});
      EXPECT_EQ(dispatch.grid.extent[2], rope.totalTokens());
      isWhole |= dispatch.bytesRead || dispatch.bytesWritten;
    }
    // Many vectors that lie scattered are declared as a whole.
    wholes += isWhole;
    if (isWhole) continue;
    const MultiRoPEOutcome expected =
        reference(op, [](const Tensor& tensor) { return std::vector<std::byte>(tensor.byteCount()); });
    TouchedBytes touched;
    touchVectors(touched, expected.queries, op.queries, op.rotatedQueries);
    if (op.keys) touchVectors(touched, expected.keys, *op.keys, op.rotatedKeys);
    for (const Tensor* numbers : {std::get_if<Tensor>(&op.positions.source), offsetTensor(op)}) {
      if (numbers && rope.totalTokens() != 0) touched.reads(*numbers, 0, numbers->byteCount());
    }
    touched.expectReads(planned);
    touched.expectWrites(planned);
  }
  EXPECT(wholes < rope::kDraws / 50);
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

// Four pairs a thread where alignment allows; heads share a thread where there are many tokens; keys that are unlike
// queries have a dispatch of their own; scattered vectors are declared as a whole, and what moves is counted.
// Frequencies are fractions of a turn, whole turns left out, and their axis: one radian is 0x28be60db'9391054a / 2^64
// turns, and seven radians are 1.114 turns.
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
      {"one radian a pair", {.queries = f16(1, 6), .rotary = {.base = 1}}},
      {"pairs of axes 1 to 3",
       {.queries = f16(1, 6),
        .rotary = {.layout = RotaryEmbedding::Layout::mrope, .sections = {0, 1, 1, 1}, .base = 1}}},
      {"seven radians a pair", {.queries = f16(1, 6), .rotary = {.base = 1, .scale = 7}}},
      {"a pair that does not turn",
       {.queries = f16(1, 6), .rotary = {.base = 1, .frequencyFactors = {INFINITY, 1, 1}}}},
  };
  std::vector<std::string> lines;
  for (const auto& [name, op] : cases) lines.push_back(planLine(name, REQUIRE(plan(op))));
  expectGolden(kRotaryPlans, lines);
}

}  // namespace mnk::test
