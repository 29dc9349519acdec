// Every rule of MultiRoPE, broken on purpose. Those of its RotaryEmbedding are in RotaryRuleTests.cpp.
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/MultiRoPE/MultiRoPERules.hpp"

namespace mnk::test {

namespace {

using Op = MultiRoPE;
using List = std::vector<int32_t>;
using Strides = HeadsView::Strides;

constexpr uint64_t kHuge = uint64_t{1} << 63;

// Two sequences of three tokens, f32, 4 query heads and 2 key heads of 8; results in f16.
Op soundOp() {
  return {.queries = f32(2, 3, 4, 8),
          .keys = f32(2, 3, 2, 8),
          .rotatedQueries = f16(2, 3, 4, 8),
          .rotatedKeys = f16(2, 3, 2, 8),
          .positions = 5,
          .offsets = List{0, -3}};
}

void useInPlace(Op& op) {
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

const Break<Op> kBroken[] = {
    [](Op& op) { op.queries = {}; },
    [](Op& op) { op.keys = HeadsView(); },
    [](Op& op) { op.rotatedQueries = HeadsView(); },
    [](Op& op) { op.rotatedKeys = HeadsView(); },
    [](Op& op) { op.keys.reset(); },
    [](Op& op) { op.keys->layout = static_cast<KVLayout>(2); },
    [](Op& op) { op.queries = f32(192); },
    [](Op& op) { op.rotatedKeys = HeadsView(f16(12, 8), KVLayout::headMajor); },
    [](Op& op) { op.keys = u32(2, 3, 2, 8); },
    [](Op& op) { op.queries = f32(2, 3, 0, 8); },
    [](Op& op) { op.keys = f32(2, 3, 2, 0); },
    [](Op& op) { op.queries = f32(2, 3, 4, 7); },
    [](Op& op) { op = Op{.queries = f16(0, 4, 7)}; },  // zero tokens are checked all the same
    [](Op& op) { op.queries = f32(k2To31, 1, 1, 8); },
    [](Op& op) { op.queries = f32(65536, 32768, 1, 8); },
    [](Op& op) { op.keys = f32(1, k2To31, 8); },
    [](Op& op) { op.keys = HeadsView(f32(8), Strides{.sequences = kHuge, .tokens = kHuge, .headDim = 8}); },
    [](Op& op) { op.keys = f32(2, 4, 2, 8); },
    [](Op& op) { op.keys = f32(3, 2, 2, 8); },
    [](Op& op) { op.keys = f32(2, 3, 2, 6); },
    [](Op& op) { op.rotatedQueries = f16(2, 3, 5, 8); },
    [](Op& op) { op.rotatedKeys = f16(6, 2, 8); },
    [](Op& op) { stridesOf(op.queries).offset = 1; },
    [](Op& op) { op = Op{.queries = columns(f16(5, 64), 56)}; },
    [](Op& op) { stridesOf(*op.rotatedKeys).sequenceStride = kHuge; },
    [](Op& op) { stridesOf(*op.rotatedQueries).headStride = 7; },
    [](Op& op) { op = Op{.queries = HeadsView(f16(64), kOverlapping)}; },
    [](Op& op) { op = Op{.queries = HeadsView(f16(32), kRepeated)}; },
    [](Op& op) { op.positions = f32(6); },
    [](Op& op) { op.positions = Tensor(); },
    [](Op& op) { op.positions = i32(5); },
    [](Op& op) { op.positions = u32(5, 6); },
    [](Op& op) { op.positions = u32(0, 6); },
    [](Op& op) { op.positions = i32(2, 3, 2); },
    [](Op& op) { op.positions = List(7); },
    [](Op& op) { op.positions = List(); },
    [](Op& op) { op.positions = List(12); },
    [](Op& op) { op.positions = RotaryPositions(List(6), 2); },
    [](Op& op) { op.positions = RotaryPositions(List(), 0); },
    [](Op& op) { op.positions = RotaryPositions(List(30), 5); },
    [](Op& op) { op = Op{.queries = f32(513, 1, 2), .positions = RotaryPositions(List(1026), 2)}; },
    [](Op& op) { op.offsets = u16(2); },
    [](Op& op) { op.offsets = Tensor(); },
    [](Op& op) { op.offsets = List(3); },
    [](Op& op) { op.offsets = i32(1); },
    [](Op& op) { op = Op{.queries = f32(1025, 1, 1, 2), .offsets = List(1025)}; },
    [](Op& op) { op.positions = k2To31; },
    [](Op& op) { op.positions = UINT64_MAX; },
    [](Op& op) { op.positions = (int64_t{1} << 31) - 2; },
    [](Op& op) { op.positions = -(int64_t{1} << 31); },
    [](Op& op) { op.positions = List(6, INT32_MAX), op.offsets = List(2, 3); },
    [](Op& op) { op.rotatedQueries = aliased(op.queries.tensor, f16(2, 3, 4, 8)); },
    [](Op& op) { op.keys = aliased(op.rotatedQueries->tensor, f32(2, 3, 2, 8)); },
    [](Op& op) { op.rotatedKeys = aliased(op.rotatedQueries->tensor, f16(2, 3, 2, 8), 192); },
    [](Op& op) { op.rotatedKeys = aliased(op.queries.tensor, f16(2, 3, 2, 8), 576); },
    [](Op& op) { op.positions = aliased(op.rotatedKeys->tensor, i32(6), 168); },
    [](Op& op) { op.offsets = aliased(op.rotatedQueries->tensor, i32(2), 376); },
    [](Op& op) { useInPlace(op), op.keys = aliased(op.queries.tensor, f32(2, 3, 2, 8), 32); },
    [](Op& op) {
      op.queries = f16(5, 64), op = Op{.queries = columns(op.queries.tensor, 0), .keys = columns(op.queries.tensor, 8)};
    },
};

constexpr GoldenText kGolden{
    "Ops/MultiRoPE/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(MultiRoPERules, EachHasItsError) {
  ErrorLines errors;
  expectRules<Op>(errors, multiRoPERules(), Op::name, soundOp(), kBroken, [](const Op& op) { return plan(op); });
  expectGolden(kGolden, errors.lines());
}

// Nothing is recorded for a refused op, and the encoder stays usable.
TEST(MultiRoPERules, ASoundRotationFollowsARefusedOne) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f16, REQUIRE(Shape::make({3, 2, 8}))));
    std::vector<std::byte> ones(tensor.byteCount(), std::byte{1}), after(tensor.byteCount());
    REQUIRE(tensor.write(ones));
    CommandEncoder encoder(device);
    EXPECT_ERROR(encoder.encode(Op{.queries = tensor, .positions = List(2)}),
                 {.op = "MultiRoPE", .what = "positions do not match the tokens"});
    EXPECT_ERROR(encoder.encode(Op{.queries = tensor, .rotary = {.base = -1}}),
                 {.op = "MultiRoPE", .what = "the base is not a positive number"});
    EXPECT_EQ(encoder.summary().total.dispatches, 0u);
    REQUIRE(encoder.encode(Op{.queries = tensor}));
    EXPECT_EQ(encoder.summary().total.dispatches, 1u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    REQUIRE(tensor.read(after));
    EXPECT(after != ones);
  });
}

TEST(MultiRoPERules, AcceptsWhatOnlyLooksWrong) {
  const Tensor tensor = f16(3, 2, 8), fused = f16(5, 64);
  const std::pair<Op, size_t> cases[] = {
      // Zero tokens are no work.
      {{.queries = f16(0, 4, 8)}, 0},
      {{.queries = f16(2, 0, 4, 8)}, 0},
      {{.queries = f16(0, 3, 4, 8), .positions = List()}, 0},
      // Results may take the place of their sources. With one token the distance between tokens does not count.
      {{.queries = tensor, .rotatedQueries = tensor}, 1},
      {{.queries = REQUIRE(tensor.slice(0, 1)),
        .rotatedQueries = HeadsView(tensor, Strides{.heads = 2, .headDim = 8, .tokenStride = 99, .headStride = 8})},
       1},
      // Columns of one fused projection are apart, although their ranges enclose each other.
      {{.queries = REQUIRE(HeadsView::columns(fused, 0, 4, 8)), .keys = REQUIRE(HeadsView::columns(fused, 32, 2, 8))},
       1},
      // Sources may repeat vectors.
      {{.queries = HeadsView(f16(32), kRepeated), .rotatedQueries = f16(3, 4, 8)}, 1},
  };
  for (const auto& [op, dispatches] : cases) EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), dispatches);
  EXPECT_EQ(REQUIRE(plan(cases[3].first)).text(), REQUIRE(plan(Op{.queries = tensor})).text());
}

}  // namespace mnk::test
