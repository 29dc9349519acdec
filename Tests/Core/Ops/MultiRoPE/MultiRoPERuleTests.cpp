// Every rule of MultiRoPE and of its RotaryEmbedding, broken on purpose.
#include <cmath>

#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MultiRoPE/MultiRoPE.hpp"

namespace mnk::test {

namespace {

using PositionList = std::vector<int32_t>;
using Strides = HeadsView::Strides;
using Layout = RotaryEmbedding::Layout;
using YaRN = RotaryEmbedding::YaRN;

constexpr uint64_t kHuge = uint64_t{1} << 63;

// Two sequences of three tokens, f32, 4 query heads and 2 key heads of 8; results in f16.
MultiRoPE soundRotation() {
  return {.queries = f32(2, 3, 4, 8),
          .keys = f32(2, 3, 2, 8),
          .rotatedQueries = f16(2, 3, 4, 8),
          .rotatedKeys = f16(2, 3, 2, 8),
          .positions = 5,
          .offsets = PositionList{0, -3}};
}

void useInPlace(MultiRoPE& op) {
  op.rotatedQueries.reset();
  op.rotatedKeys.reset();
}

Strides& stridesOf(HeadsView& view) {
  view.strides = view.resolved();
  return *view.strides;
}

constexpr Strides kOverlapping{.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 8, .headStride = 8};
constexpr Strides kRepeated{.tokens = 3, .heads = 4, .headDim = 8, .tokenStride = 0, .headStride = 8};

HeadsView columns(const Tensor& fused, uint64_t first) {
  return REQUIRE(HeadsView::columns(fused, first, 2, 8));
}

const Break<MultiRoPE> kBrokenRotations[] = {
    [](MultiRoPE& op) { op.queries = {}; },
    [](MultiRoPE& op) { op.keys = HeadsView(); },
    [](MultiRoPE& op) { op.rotatedQueries = HeadsView(); },
    [](MultiRoPE& op) { op.rotatedKeys = HeadsView(); },
    [](MultiRoPE& op) { op.keys.reset(); },
    [](MultiRoPE& op) { op.keys->layout = static_cast<KVLayout>(2); },
    [](MultiRoPE& op) { op.queries = f32(192); },
    [](MultiRoPE& op) { op.rotatedKeys = HeadsView(f16(12, 8), KVLayout::headMajor); },
    [](MultiRoPE& op) { op.keys = u32(2, 3, 2, 8); },
    [](MultiRoPE& op) { op.queries = f32(2, 3, 0, 8); },
    [](MultiRoPE& op) { op.keys = f32(2, 3, 2, 0); },
    [](MultiRoPE& op) { op.queries = f32(2, 3, 4, 7); },
    [](MultiRoPE& op) { op = MultiRoPE{.queries = f16(0, 4, 7)}; },  // zero tokens are checked all the same
    [](MultiRoPE& op) { op.queries = f32(k2To31, 1, 1, 8); },
    [](MultiRoPE& op) { op.queries = f32(65536, 32768, 1, 8); },
    [](MultiRoPE& op) { op.keys = f32(1, k2To31, 8); },
    [](MultiRoPE& op) { op.keys = HeadsView(f32(8), Strides{.sequences = kHuge, .tokens = kHuge, .headDim = 8}); },
    [](MultiRoPE& op) { op.keys = f32(2, 4, 2, 8); },
    [](MultiRoPE& op) { op.keys = f32(3, 2, 2, 8); },
    [](MultiRoPE& op) { op.keys = f32(2, 3, 2, 6); },
    [](MultiRoPE& op) { op.rotatedQueries = f16(2, 3, 5, 8); },
    [](MultiRoPE& op) { op.rotatedKeys = f16(6, 2, 8); },
    [](MultiRoPE& op) { stridesOf(op.queries).offset = 1; },
    [](MultiRoPE& op) { op = MultiRoPE{.queries = columns(f16(5, 64), 56)}; },
    [](MultiRoPE& op) { stridesOf(*op.rotatedKeys).sequenceStride = kHuge; },
    [](MultiRoPE& op) { stridesOf(*op.rotatedQueries).headStride = 7; },
    [](MultiRoPE& op) { op = MultiRoPE{.queries = HeadsView(f16(64), kOverlapping)}; },
    [](MultiRoPE& op) { op = MultiRoPE{.queries = HeadsView(f16(32), kRepeated)}; },
    [](MultiRoPE& op) { op.positions = f32(6); },
    [](MultiRoPE& op) { op.positions = Tensor(); },
    [](MultiRoPE& op) { op.positions = i32(5); },
    [](MultiRoPE& op) { op.positions = u32(5, 6); },
    [](MultiRoPE& op) { op.positions = u32(0, 6); },
    [](MultiRoPE& op) { op.positions = i32(2, 3, 2); },
    [](MultiRoPE& op) { op.positions = PositionList(7); },
    [](MultiRoPE& op) { op.positions = PositionList(); },
    [](MultiRoPE& op) { op.positions = PositionList(12); },
    [](MultiRoPE& op) { op.positions = RotaryPositions(PositionList(6), 2); },
    [](MultiRoPE& op) { op.positions = RotaryPositions(PositionList(), 0); },
    [](MultiRoPE& op) { op.positions = RotaryPositions(PositionList(30), 5); },
    [](MultiRoPE& op) {
      op = MultiRoPE{.queries = f32(513, 1, 2), .positions = RotaryPositions(PositionList(1026), 2)};
    },
    [](MultiRoPE& op) { op.offsets = u16(2); },
    [](MultiRoPE& op) { op.offsets = Tensor(); },
    [](MultiRoPE& op) { op.offsets = PositionList(3); },
    [](MultiRoPE& op) { op.offsets = i32(1); },
    [](MultiRoPE& op) { op = MultiRoPE{.queries = f32(1025, 1, 1, 2), .offsets = PositionList(1025)}; },
    [](MultiRoPE& op) { op.positions = k2To31; },
    [](MultiRoPE& op) { op.positions = UINT64_MAX; },
    [](MultiRoPE& op) { op.positions = (int64_t{1} << 31) - 2; },
    [](MultiRoPE& op) { op.positions = -(int64_t{1} << 31); },
    [](MultiRoPE& op) { op.positions = PositionList(6, INT32_MAX), op.offsets = PositionList(2, 3); },
    [](MultiRoPE& op) { op.rotatedQueries = aliased(op.queries.tensor, f16(2, 3, 4, 8)); },
    [](MultiRoPE& op) { op.keys = aliased(op.rotatedQueries->tensor, f32(2, 3, 2, 8)); },
    [](MultiRoPE& op) { op.rotatedKeys = aliased(op.rotatedQueries->tensor, f16(2, 3, 2, 8), 192); },
    [](MultiRoPE& op) { op.rotatedKeys = aliased(op.queries.tensor, f16(2, 3, 2, 8), 576); },
    [](MultiRoPE& op) { op.positions = aliased(op.rotatedKeys->tensor, i32(6), 168); },
    [](MultiRoPE& op) { op.offsets = aliased(op.rotatedQueries->tensor, i32(2), 376); },
    [](MultiRoPE& op) { useInPlace(op), op.keys = aliased(op.queries.tensor, f32(2, 3, 2, 8), 32); },
    [](MultiRoPE& op) {
      op.queries = f16(5, 64),
      op = MultiRoPE{.queries = columns(op.queries.tensor, 0), .keys = columns(op.queries.tensor, 8)};
    },
};

template <typename... Sections>
void setSections(RotaryCheck& op, Layout layout, Sections... sections) {
  op.rotary.layout = layout;
  op.rotary.sections = {static_cast<uint32_t>(sections)...};
}

void useAxis3(RotaryCheck& op) {
  op.rotary.otherAxis = RotaryEmbedding::OtherAxis::axis3;
}

const Break<RotaryCheck> kBrokenEmbeddings[] = {
    [](RotaryCheck& op) { op.rotary.layout = static_cast<Layout>(3); },
    [](RotaryCheck& op) { op.rotary.pairing = static_cast<RotaryEmbedding::Pairing>(3); },
    [](RotaryCheck& op) { op.rotary.otherAxis = static_cast<RotaryEmbedding::OtherAxis>(2); },
    [](RotaryCheck& op) { op.headDim = 0; },
    [](RotaryCheck& op) { op.rotary.ropeDim = 7; },
    [](RotaryCheck& op) { op.rotary.ropeDim = 18; },
    [](RotaryCheck& op) { op.headDim = 2048; },
    [](RotaryCheck& op) { op.rotary.base = 0; },
    [](RotaryCheck& op) { op.rotary.base = -2; },
    [](RotaryCheck& op) { op.rotary.base = INFINITY; },
    [](RotaryCheck& op) { op.rotary.base = NAN; },
    [](RotaryCheck& op) { op.rotary.scale = 0; },
    [](RotaryCheck& op) { op.rotary.scale = NAN; },
    [](RotaryCheck& op) { setSections(op, {}, 0, 0, 8, 0); },
    [](RotaryCheck& op) { op.rotary.layout = Layout::mrope; },
    [](RotaryCheck& op) { setSections(op, Layout::vision, 0, 0, 4, 4); },
    [](RotaryCheck& op) { setSections(op, Layout::vision, 2, 2, 0, 0), op.rotary.ropeDim = 8; },
    [](RotaryCheck& op) { setSections(op, Layout::vision, 4, 3, 1, 0); },
    [](RotaryCheck& op) { setSections(op, Layout::vision, UINT32_MAX, 9, 0, 0); },
    [](RotaryCheck& op) { op.rotary.frequencyFactors.assign(16, 1); },
    [](RotaryCheck& op) { op.rotary.frequencyFactors = {1, 1, 1, 1, 1, 1, 1, 0}; },
    [](RotaryCheck& op) { op.rotary.frequencyFactors = {1, NAN, 1, 1, 1, 1, 1, 1}; },
    [](RotaryCheck& op) {
      setSections(op, Layout::vision, 4, 4, 0, 0), op.rotary.yarn = YaRN{.originalContext = 4096};
    },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .extensionFactor = NAN}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .extensionFactor = -1}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .extensionFactor = 1.5f}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .attentionFactor = 0}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .betaFast = INFINITY}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .betaSlow = -1}; },
    [](RotaryCheck& op) { op.rotary.base = 1, op.rotary.yarn = YaRN{.originalContext = 9}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .betaFast = 1, .betaSlow = 32}; },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .betaFast = 2, .betaSlow = 2}; },
    [](RotaryCheck& op) { op.rotary.scale = 4, op.rotary.yarn = YaRN{.originalContext = 9}; },
    [](RotaryCheck& op) {
      op.rotary.scale = 1.5, op.rotary.yarn = YaRN{.originalContext = 9, .extensionFactor = 0.25f};
    },
    [](RotaryCheck& op) { op.rotary.yarn = YaRN{.originalContext = 9, .attentionFactor = 1e-45f}; },
    [](RotaryCheck& op) {
      op.rotary.scale = std::exp(-10.0), op.rotary.yarn = YaRN{.originalContext = 9, .attentionFactor = 2e38f};
    },
    [](RotaryCheck& op) { op.rotary.scale = 100000; },
    [](RotaryCheck& op) { op.rotary.scale = 1e300, op.rotary.frequencyFactors.assign(8, 1e-30f); },
    [](RotaryCheck& op) { op.axes = 3, op.axesDiffer = true; },
    [](RotaryCheck& op) { setSections(op, Layout::mrope, 2, 3, 3, 0), op.axes = 2; },
    [](RotaryCheck& op) { setSections(op, Layout::imrope, 4, 2, 2, 0), useAxis3(op), op.axes = 3; },
};

constexpr GoldenText kRotationErrors{
    "Ops/MultiRoPE/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(MultiRoPERules, EachHasItsError) {
  ErrorLines errors;
  expectRules<MultiRoPE>(errors, multiRoPERules(), MultiRoPE::name, soundRotation(), kBrokenRotations,
                         [](const MultiRoPE& op) { return plan(op); });
  expectRules<RotaryCheck>(errors, rotaryRules(), "Rotary", {.rotary = {}, .headDim = 16, .axes = 1}, kBrokenEmbeddings,
                           [](const RotaryCheck& op) { return checkRules(rotaryRules(), op, "Rotary"); });
  expectGolden(kRotationErrors, errors.lines());
}

TEST(MultiRoPERules, AcceptsWhatOnlyLooksWrong) {
  const Tensor tensor = f16(3, 2, 8);
  const YaRN unused{.extensionFactor = 0, .attentionFactor = 1.19f, .betaFast = 0};
  const std::pair<MultiRoPE, size_t> cases[] = {
      // Zero tokens are no work.
      {{.queries = f16(0, 3, 4, 8), .positions = PositionList()}, 0},
      // Results may take the place of their sources. With one token the distance between tokens does not count.
      {{.queries = tensor, .rotatedQueries = tensor}, 1},
      {{.queries = REQUIRE(tensor.slice(0, 1)),
        .rotatedQueries = HeadsView(tensor, Strides{.heads = 2, .headDim = 8, .tokenStride = 99, .headStride = 8})},
       1},
      // Sources may repeat vectors.
      {{.queries = HeadsView(f16(32), kRepeated), .rotatedQueries = f16(3, 4, 8)}, 1},
      // Not all numbers of an embedding are read, and no pair need turn.
      {{.queries = tensor, .rotary = {.base = 0.5, .scale = 4, .yarn = unused}}, 1},
      {{.queries = tensor, .rotary = {.frequencyFactors = std::vector<float>(4, INFINITY)}}, 1},
  };
  for (const auto& [op, dispatches] : cases) EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), dispatches);
  EXPECT_EQ(REQUIRE(plan(cases[1].first)).text(), REQUIRE(plan(MultiRoPE{.queries = tensor})).text());
}

}  // namespace mnk::test
