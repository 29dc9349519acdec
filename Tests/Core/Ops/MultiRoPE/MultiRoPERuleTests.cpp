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

constexpr std::string_view kMakeTensors = "Make the tensors before rotating them.";
constexpr std::string_view kReshape = "Reshape the tensor, set its layout, or give its strides.";
constexpr std::string_view kVectors = "at least one head and two elements";
constexpr std::string_view kPassVectors = "Pass vectors to rotate; zero tokens are allowed.";
constexpr std::string_view kSmall = "less than 2^31 on every axis, and as many tokens in all";
constexpr std::string_view kSplit = "Split the tokens over several calls.";
constexpr std::string_view kMatchKeys = "Pass keys of the same tokens and head dim, or rotate them separately.";
constexpr std::string_view kMatchResult = "Give the result the extents of its source.";
constexpr std::string_view kCorrect = "Correct the offset, the strides or the counts.";
constexpr std::string_view kApart = "each stride past all that the smaller ones reach";
constexpr std::string_view kKeepApart = "Give the result strides that keep its vectors apart.";
constexpr std::string_view kNumbers = "an i32 or u32 tensor with memory, a list, or a first position";
constexpr std::string_view kOffsetNumbers = "an i32 or u32 tensor with memory, or a list";
constexpr std::string_view kEveryToken = "Give every token a position on each axis, axis after axis.";
constexpr std::string_view kEverySequence =
    "Give every sequence one offset; queries [sequences, tokens, heads, headDim] say how many there are.";
constexpr std::string_view kRange = "-2^31 to 2^31 - 1, with its offset and without";
constexpr std::string_view kInRange = "Pass positions in that range.";
constexpr std::string_view kSeparate = "separate memory, or exactly the vectors that are rotated";
constexpr std::string_view kSeparately = "Rotate in place, or into memory that nothing else uses.";
constexpr std::string_view kShape = "[6], [axes, 6] or [axes, 2, 3] with 1 to 4 axes";

constexpr uint64_t kTooLong = uint64_t{1} << 31;
constexpr uint64_t kHuge = uint64_t{1} << 63;

// Two sequences of three tokens, f32, 4 query heads and 2 key heads of 8; results in f16.
Op soundOp() {
  return {.queries = planTensor(DType::f32, {2, 3, 4, 8}),
          .keys = planTensor(DType::f32, {2, 3, 2, 8}),
          .rotatedQueries = planTensor(DType::f16, {2, 3, 4, 8}),
          .rotatedKeys = planTensor(DType::f16, {2, 3, 2, 8}),
          .positions = 5,
          .offsets = List{0, -3}};
}

Tensor over(const Tensor& of, DType dtype, std::initializer_list<uint64_t> extents, uint64_t offset = 0) {
  return REQUIRE(Tensor::over(of.buffer(), dtype, REQUIRE(Shape::make(extents)), of.byteOffset() + offset));
}

const BrokenRule<Op> kBroken[] = {
    {"an operand has no memory", "queries without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.queries = {}; }},
    {"an operand has no memory", "keys without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.keys = HeadsView(); }},
    {"an operand has no memory", "rotated queries without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.rotatedQueries = HeadsView(); }},
    {"an operand has no memory", "rotated keys without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.rotatedKeys = HeadsView(); }},
    {"rotated keys are given without keys", "a place for rotated keys, and no keys", "keys for it",
     "Pass the keys, or leave their place out.", [](Op& op) { op.keys.reset(); }},
    {"an operand has the wrong rank", "queries [192]",
     "[heads, headDim], [tokens, heads, headDim] or [sequences, tokens, heads, headDim]", kReshape,
     [](Op& op) { op.queries = planTensor(DType::f32, {192}); }},
    {"an operand has the wrong rank", "rotated keys [12, 8]",
     "[heads, tokens, headDim] or [sequences, heads, tokens, headDim]", kReshape,
     [](Op& op) {
       op.rotatedKeys = HeadsView(planTensor(DType::f16, {12, 8}), KVLayout::headMajor);
     }},
    {"an operand is not of a float dtype", "keys u32 [2, 3, 2, 8]", "f32, f16 or bf16", "Convert the tensor first.",
     [](Op& op) {
       op.keys = planTensor(DType::u32, {2, 3, 2, 8});
     }},
    {"an operand has no heads, or heads of no elements", "queries of 2 x 3 tokens, 0 heads of 8", kVectors,
     kPassVectors,
     [](Op& op) {
       op.queries = planTensor(DType::f32, {2, 3, 0, 8});
     }},
    {"an operand has no heads, or heads of no elements", "keys of 2 x 3 tokens, 2 heads of 0", kVectors, kPassVectors,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {2, 3, 2, 0});
     }},
    {"the head dim is odd", "7", "an even number, because elements turn in pairs",
     "Pass vectors of an even number of elements.",
     [](Op& op) {
       op.queries = planTensor(DType::f32, {2, 3, 4, 7});
     }},
    {"an extent is too large for the kernel", "queries of 2147483648 x 1 token, 1 head of 8", kSmall, kSplit,
     [](Op& op) {
       op.queries = planTensor(DType::f32, {kTooLong, 1, 1, 8});
     }},
    {"an extent is too large for the kernel", "queries of 65536 x 32768 tokens, 1 head of 8", kSmall, kSplit,
     [](Op& op) {
       op.queries = planTensor(DType::f32, {65536, 32768, 1, 8});
     }},
    {"an extent is too large for the kernel", "keys of 1 x 1 token, 2147483648 heads of 8", kSmall, kSplit,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {1, kTooLong, 8});
     }},
    {"an extent is too large for the kernel", "keys of 9223372036854775808 x 9223372036854775808 tokens, 1 head of 8",
     kSmall, kSplit,
     [](Op& op) {
       op.keys = HeadsView(planTensor(DType::f32, {8}), Strides{.sequences = kHuge, .tokens = kHuge, .headDim = 8});
     }},
    {"keys do not match queries", "keys of 2 x 4 tokens, 2 heads of 8",
     "2 x 3 tokens, 4 heads of 8, except for the number of heads", kMatchKeys,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {2, 4, 2, 8});
     }},
    {"keys do not match queries", "keys of 3 x 2 tokens, 2 heads of 8",
     "2 x 3 tokens, 4 heads of 8, except for the number of heads", kMatchKeys,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {3, 2, 2, 8});
     }},
    {"keys do not match queries", "keys of 2 x 3 tokens, 2 heads of 6",
     "2 x 3 tokens, 4 heads of 8, except for the number of heads", kMatchKeys,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {2, 3, 2, 6});
     }},
    {"a result does not match what is rotated", "rotated queries of 2 x 3 tokens, 5 heads of 8",
     "2 x 3 tokens, 4 heads of 8", kMatchResult,
     [](Op& op) {
       op.rotatedQueries = planTensor(DType::f16, {2, 3, 5, 8});
     }},
    {"a result does not match what is rotated", "rotated keys of 1 x 6 tokens, 2 heads of 8",
     "2 x 3 tokens, 2 heads of 8", kMatchResult,
     [](Op& op) {
       op.rotatedKeys = planTensor(DType::f16, {6, 2, 8});
     }},
    {"vectors lie outside of their tensor",
     "queries of 2 x 3 tokens, 4 heads of 8 at 1, strides 96, 32 and 8, in 192 elements", "every vector inside",
     kCorrect,
     [](Op& op) {
       Strides strides = op.queries.resolved();
       strides.offset = 1;
       op.queries.strides = strides;
     }},
    {"vectors lie outside of their tensor",
     "rotated keys of 2 x 3 tokens, 2 heads of 8 at 0, strides 9223372036854775808, 16 and 8, in 96 elements",
     "every vector inside", kCorrect,
     [](Op& op) {
       Strides strides = op.rotatedKeys->resolved();
       strides.sequenceStride = kHuge;
       op.rotatedKeys->strides = strides;
     }},
    {"the vectors of a result overlap each other",
     "rotated queries of 2 x 3 tokens, 4 heads of 8 at 0, strides 96, 32 and 7, in 192 elements", kApart, kKeepApart,
     [](Op& op) {
       Strides strides = op.rotatedQueries->resolved();
       strides.headStride = 7;
       op.rotatedQueries->strides = strides;
     }},
    {"the vectors of a result overlap each other",
     "queries of 1 x 3 tokens, 2 heads of 8 at 0, strides 0, 8 and 8, in 64 elements", kApart, kKeepApart,
     [](Op& op) {
       op = {.queries = HeadsView(planTensor(DType::f16, {64}),
                                  Strides{.tokens = 3, .heads = 2, .headDim = 8, .tokenStride = 8, .headStride = 8})};
     }},
    {"positions are not i32 or u32", "f32 [6]", kNumbers, "Pass positions as 32-bit integers.",
     [](Op& op) { op.positions = planTensor(DType::f32, {6}); }},
    {"positions are not i32 or u32", "a tensor without memory", kNumbers, "Pass positions as 32-bit integers.",
     [](Op& op) { op.positions = Tensor(); }},
    {"positions do not match the tokens", "i32 [5]", kShape, kEveryToken,
     [](Op& op) { op.positions = planTensor(DType::i32, {5}); }},
    {"positions do not match the tokens", "u32 [5, 6]", kShape, kEveryToken,
     [](Op& op) {
       op.positions = planTensor(DType::u32, {5, 6});
     }},
    {"positions do not match the tokens", "u32 [0, 6]", kShape, kEveryToken,
     [](Op& op) {
       op.positions = planTensor(DType::u32, {0, 6});
     }},
    {"positions do not match the tokens", "i32 [2, 3, 2]", kShape, kEveryToken,
     [](Op& op) {
       op.positions = planTensor(DType::i32, {2, 3, 2});
     }},
    {"positions do not match the tokens", "a list of 7 on 1 axis", kShape, kEveryToken,
     [](Op& op) { op.positions = List(7); }},
    {"positions do not match the tokens", "a list of 0 on 1 axis", kShape, kEveryToken,
     [](Op& op) { op.positions = List(); }},
    {"positions do not match the tokens", "a list of 12 on 1 axis", kShape, kEveryToken,
     [](Op& op) { op.positions = List(12); }},
    {"positions do not match the tokens", "a list of 6 on 2 axes", kShape, kEveryToken,
     [](Op& op) { op.positions = RotaryPositions(List(6), 2); }},
    {"positions do not match the tokens", "a list of 0 on 0 axes", kShape, kEveryToken,
     [](Op& op) { op.positions = RotaryPositions(List(), 0); }},
    {"positions do not match the tokens", "a list of 30 on 5 axes", kShape, kEveryToken,
     [](Op& op) { op.positions = RotaryPositions(List(30), 5); }},
    {"the list of positions is too long", "a list of 1026 on 2 axes", "at most 1024 numbers",
     "Pass them in a tensor, or split the tokens over several calls.",
     [](Op& op) {
       op = {.queries = planTensor(DType::f32, {513, 1, 2}), .positions = RotaryPositions(List(1026), 2)};
     }},
    {"offsets are not i32 or u32", "u16 [2]", kOffsetNumbers, "Pass offsets as 32-bit integers.",
     [](Op& op) { op.offsets = planTensor(DType::u16, {2}); }},
    {"offsets are not i32 or u32", "a tensor without memory", kOffsetNumbers, "Pass offsets as 32-bit integers.",
     [](Op& op) { op.offsets = Tensor(); }},
    {"offsets do not match the sequences", "3 offsets", "2, one for a sequence", kEverySequence,
     [](Op& op) { op.offsets = List(3); }},
    {"offsets do not match the sequences", "1 offset", "2, one for a sequence", kEverySequence,
     [](Op& op) { op.offsets = planTensor(DType::i32, {1}); }},
    {"the list of offsets is too long", "a list of 1025", "at most 1024 numbers",
     "Pass them in a tensor, or split the sequences over several calls.",
     [](Op& op) {
       op = {.queries = planTensor(DType::f32, {1025, 1, 1, 2}), .offsets = List(1025)};
     }},
    {"a position is out of range", "position 2147483648", kRange, kInRange,
     [](Op& op) { op.positions = uint64_t{1} << 31; }},
    {"a position is out of range", "position 9223372036854775807", kRange, kInRange,
     [](Op& op) { op.positions = UINT64_MAX; }},
    {"a position is out of range", "position 2147483648", kRange, kInRange,
     [](Op& op) { op.positions = (int64_t{1} << 31) - 2; }},
    {"a position is out of range", "position -2147483651", kRange, kInRange,
     [](Op& op) { op.positions = -(int64_t{1} << 31); }},
    {"a position is out of range", "position 2147483650", kRange, kInRange,
     [](Op& op) {
       op.positions = List{0, 0, 0, 0, 0, INT32_MAX};
       op.offsets = List{0, 3};
     }},
    {"results share memory with other operands", "rotated queries overlapping queries", kSeparate, kSeparately,
     [](Op& op) {
       op.rotatedQueries = over(op.queries.tensor, DType::f16, {2, 3, 4, 8});
     }},
    {"results share memory with other operands", "rotated queries overlapping keys", kSeparate, kSeparately,
     [](Op& op) {
       op.keys = over(op.rotatedQueries->tensor, DType::f32, {2, 3, 2, 8});
     }},
    {"results share memory with other operands", "rotated queries overlapping rotated keys", kSeparate, kSeparately,
     [](Op& op) {
       op.rotatedKeys = over(op.rotatedQueries->tensor, DType::f16, {2, 3, 2, 8}, 192);
     }},
    {"results share memory with other operands", "rotated keys overlapping queries", kSeparate, kSeparately,
     [](Op& op) {
       op.rotatedKeys = over(op.queries.tensor, DType::f16, {2, 3, 2, 8}, 576);
     }},
    {"results share memory with other operands", "rotated keys overlapping positions", kSeparate, kSeparately,
     [](Op& op) { op.positions = over(op.rotatedKeys->tensor, DType::i32, {6}, 168); }},
    {"results share memory with other operands", "rotated queries overlapping offsets", kSeparate, kSeparately,
     [](Op& op) { op.offsets = over(op.rotatedQueries->tensor, DType::i32, {2}, 376); }},
    {"results share memory with other operands", "queries overlapping keys", kSeparate, kSeparately,
     [](Op& op) {
       op.rotatedQueries.reset();
       op.rotatedKeys.reset();
       op.keys = over(op.queries.tensor, DType::f32, {2, 3, 2, 8}, 32);
     }},
};

}  // namespace

TEST(MultiRoPERules, EachIsBrokenByItsCase) {
  EXPECT(checkRules(multiRoPERules(), soundOp(), Op::name));
  expectEveryRuleIsBroken<Op>(multiRoPERules(), kBroken);
  for (const BrokenRule<Op>& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken<Op>(multiRoPERules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.what = broken.what});
  }
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

TEST(MultiRoPERules, ZeroTokensAreNoWork) {
  for (const auto& extents : {std::vector<uint64_t>{0, 4, 8}, {2, 0, 4, 8}, {0, 3, 4, 8}}) {
    const Tensor tensor = planTensor(DType::f16, REQUIRE(Shape::make(extents)));
    EXPECT_EQ(REQUIRE(plan(Op{.queries = tensor})).dispatches.size(), 0u);
    EXPECT_EQ(REQUIRE(plan(Op{.queries = tensor, .positions = List()})).dispatches.size(), 0u);
  }
  // They are checked all the same.
  EXPECT_ERROR(plan(Op{.queries = planTensor(DType::f16, {0, 4, 7})}), {.what = "the head dim is odd"});
}

TEST(MultiRoPERules, ResultsMayTakeThePlaceOfTheirSourcesWhenTheySaySo) {
  const Tensor tensor = planTensor(DType::f16, {3, 2, 8});
  const Plan inPlace = REQUIRE(plan(Op{.queries = tensor}));
  const Plan said = REQUIRE(plan(Op{.queries = tensor, .rotatedQueries = tensor}));
  EXPECT_EQ(said.text(), inPlace.text());
  // With one token the distance between tokens does not count.
  HeadsView one(tensor, Strides{.heads = 2, .headDim = 8, .tokenStride = 99, .headStride = 8});
  EXPECT_EQ(REQUIRE(plan(Op{.queries = REQUIRE(tensor.slice(0, 1)), .rotatedQueries = one})).dispatches.size(), 1u);
}

// Columns of one fused projection are apart, although their ranges enclose each other.
TEST(MultiRoPERules, ColumnsOfAFusedProjectionDoNotOverlap) {
  const Tensor fused = planTensor(DType::f16, {5, 64});
  Op op{.queries = REQUIRE(HeadsView::columns(fused, 0, 4, 8)), .keys = REQUIRE(HeadsView::columns(fused, 32, 2, 8))};
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
  op.keys = REQUIRE(HeadsView::columns(fused, 24, 2, 8));
  EXPECT_ERROR(plan(op), {.what = "results share memory with other operands"});
  EXPECT_ERROR(plan(Op{.queries = REQUIRE(HeadsView::columns(fused, 56, 2, 8))}),
               {.what = "vectors lie outside of their tensor"});
}

TEST(MultiRoPERules, SourcesMayRepeatVectors) {
  const Strides repeated{.tokens = 3, .heads = 4, .headDim = 8, .tokenStride = 0, .headStride = 8};
  Op op{.queries = HeadsView(planTensor(DType::f16, {32}), repeated)};
  EXPECT_ERROR(plan(op), {.what = "the vectors of a result overlap each other"});
  op.rotatedQueries = planTensor(DType::f16, {3, 4, 8});
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

}  // namespace mnk::test
