// Every rule of FlashDecode, broken on purpose.
#include <limits>

#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"

namespace mnk::test {

namespace {

using Op = FlashDecode;
using View = KVCacheView;

// Two sequences of three rows and six heads, over a ring of five slots, two of them pinned, of two heads.
Op soundOp() {
  Op op{.queries = planTensor(DType::f16, {2, 3, 6, 64}),
        .over = View{.keys = planTensor(DType::f16, {4, 2, 5, 64}),
                     .values = planTensor(DType::f16, {4, 2, 5, 64}),
                     .wrap = KVWrap::ring,
                     .pinned = 2}};
  op.sequences = {{3, 7}, {1, 4}};
  op.results = {.into = planTensor(DType::f16, {2, 3, 6, 64}), .logSumExp = planTensor(DType::f32, {2, 3, 6})};
  op.options.slopes = planTensor(DType::f32, {6});
  return op;
}

View& viewOf(Op& op) {
  return std::get<View>(op.over);
}

void usePartials(Op& op) {
  op.results = {.partials = AttentionPartials{.sums = planTensor(DType::f32, {2, 3, 6, 64}),
                                              .stats = planTensor(DType::f32, {2, 3, 6, 2})}};
}

// A codec of turbo for keys and values of head dim 128.
void useCodes(Op& op) {
  const auto plane = [] {
    return QuantizedKVPlane{.codec = {.bits = 4},
                            .codes = planTensor(DType::u8, {4, 2, 5, 64}),
                            .scales = planTensor(DType::f16, {4, 2, 5})};
  };
  op.over = QuantizedKVCacheView{.keys = plane(), .values = plane()};
  op.sequences = {{3, 5}, {1, 4}};
  op.queries = planTensor(DType::f16, {2, 3, 6, 128});
  op.results.into = planTensor(DType::f16, {2, 3, 6, 128});
}

// A latent part of 512 in values, and 64 behind it in keys.
void useLatent(Op& op) {
  viewOf(op).latentDim = 512;
  viewOf(op).values = planTensor(DType::f16, {4, 2, 5, 512});
  op.queries = planTensor(DType::f16, {2, 3, 6, 576});
  op.results.into = planTensor(DType::f16, {2, 3, 6, 512});
  op.options.scale = 0.1f;
}

// Sequences of two rows and one, in a list.
void useRowsOfTheirOwn(Op& op) {
  op.queries = planTensor(DType::f16, {3, 6, 64});
  op.sequences = {{3, 7, 0, 2}, {1, 4, 0, 1}};
  op.results = {.into = planTensor(DType::f16, {3, 6, 64})};
}

constexpr std::string_view kAxes =
    "Give results the sequences, rows and heads of the queries, in this order, and the head dim of values.";
constexpr std::string_view kMaskDue =
    "floats [rows 3, keys 5], with axes of heads 6 and sequences 2 before them or without";
constexpr std::string_view kListFix = "Pass the rows of all sequences one after another, without an axis of sequences.";
constexpr std::string_view kScales = "a number from 1e-37 to 1e+38";
constexpr std::string_view kSoftcaps = "a number from 1e-30 to 1e+30";
constexpr std::string_view kMaskFix = "Give the mask a column for each key, oldest first; other axes may be 1.";
constexpr std::string_view kPinDue = "fewer pinned slots than the ring's capacity, and none in a linear cache";
constexpr std::string_view kPinFix = "Pin fewer slots, or make the cache a larger ring.";

constexpr std::string_view kWindowFix =
    "Make the ring that large, store and attend to fewer tokens at a time, or pass a smaller window.";

constexpr std::string_view kReshape = "Reshape the queries, state their layout, or give their strides.";
constexpr std::string_view kNoHeadDims = "there is no kernel for these head dims";
constexpr std::string_view kPadFix =
    "Pad shorter vectors with zeros to one of these, and pass the scale of the head dim that they had.";
constexpr std::string_view kNoMatrices = "the matrix kernel cannot attend to this";
constexpr std::string_view kMatrixDue = "f16 without a mask, or codes, with head dims of 64, 128 or 256";

const BrokenRule<Op> kBroken[] = {
    {"queries have no memory", "a tensor without memory", "a tensor with memory",
     "Make the queries before attending with them.", [](Op& op) { op.queries = {}; }},
    {"queries have the wrong rank", "[64]",
     "[heads, headDim], [rows, heads, headDim] or [sequences, rows, heads, headDim]", kReshape,
     [](Op& op) { op.queries = planTensor(DType::f16, {64}); }},
    {"queries have the wrong rank", "[6, 64]", "[heads, rows, headDim] or [sequences, heads, rows, headDim]", kReshape,
     [](Op& op) {
       op.queries = {planTensor(DType::f16, {6, 64}), KVLayout::headMajor};
     }},
    {"queries lie outside of their tensor",
     "2 x 3 rows, 6 heads of 64, at 1, strides 1152, 384 and 64, in 2304 elements", "every vector inside",
     "Correct the offset, the strides or the counts.",
     [](Op& op) {
       op.queries.strides = op.queries.resolved();
       op.queries.strides->offset = 1;
     }},
    {"queries are not floats", "u16", "f32, f16 or bf16", "Convert the queries.",
     [](Op& op) {
       op.queries = planTensor(DType::u16, {2, 3, 6, 64});
     }},
    {"an extent is too large for the kernel", "2147483648", "less than 2^31 on every axis",
     "Attend to a part at a time.",
     [](Op& op) {
       viewOf(op).keys = planTensor(DType::f16, {4, 2, uint64_t{1} << 31, 64});
       viewOf(op).values = planTensor(DType::f16, {4, 2, uint64_t{1} << 31, 64});
     }},
    {"the cache has no room for its pinned slots", "5 pinned slots in a ring of 5", kPinDue, kPinFix,
     [](Op& op) { viewOf(op).pinned = 5; }},
    {"the cache has no room for its pinned slots", "2 pinned slots in a linear cache of 5", kPinDue, kPinFix,
     [](Op& op) { viewOf(op).wrap = KVWrap::linear; }},
    {"queries have another head dim than keys", "128", "64", "Pass queries of the model that filled the cache.",
     [](Op& op) {
       op.queries = planTensor(DType::f16, {2, 3, 6, 128});
     }},
    {kNoHeadDims, "64 of keys and 36 of values", "multiples of 8 up to 256, 512, or 576 with 512", kPadFix,
     [](Op& op) {
       viewOf(op).values = planTensor(DType::f16, {4, 2, 5, 36});
     }},
    {kNoHeadDims, "512 of keys and 128 of values", "32, 64, 80, 96, 112, 128, 192 or 256, or 512 for both", kPadFix,
     [](Op& op) {
       useCodes(op);
       auto& cache = std::get<QuantizedKVCacheView>(op.over);
       cache.keys.codes = planTensor(DType::u8, {4, 2, 5, 64 * cache.keys.codec.bits});
       op.queries = planTensor(DType::f16, {2, 3, 6, 512});
     }},
    {"queries have another head dim than keys", "64", "576: a latent part of 512 and 64 behind it",
     "Pass queries of the model that filled the cache.",
     [](Op& op) {
       useLatent(op);
       op.queries = planTensor(DType::f16, {2, 3, 6, 64});
     }},
    {kNoHeadDims, "32 of keys and 512 of values", "64 of keys beside a latent part of 512", kPadFix,
     [](Op& op) {
       useLatent(op);
       viewOf(op).keys = planTensor(DType::f16, {4, 2, 5, 32});
       op.queries = planTensor(DType::f16, {2, 3, 6, 544});
     }},
    {"attention over a latent cache has no scale", "none",
     "1 / sqrt of the head dim that the model's keys have before they are absorbed",
     "Pass the model's scale, for DeepSeek-V2 and V3 1 / sqrt(128 + 64).",
     [](Op& op) {
       useLatent(op);
       op.options.scale = 0;
     }},
    {"queries fit the cache only as head-major", "3 query heads over 2 heads in token-major [2, 6, 3, 64]",
     "heads on the axis before the last, as many for each head of the cache",
     "Pass token-major queries, or, if the tensor is head-major, say so: HeadsView with KVLayout::headMajor.",
     [](Op& op) {
       op.queries = planTensor(DType::f16, {2, 6, 3, 64});
     }},
    {"query heads are no multiple of the cache's heads", "7 query heads over 2 heads",
     "as many query heads for each head of the cache", "Pass all query heads of the layer.",
     [](Op& op) {
       op.queries = planTensor(DType::f16, {2, 3, 7, 64});
     }},
    {"there are too many query heads for each head of the cache", "258 query heads over 2 heads",
     "at most 128 for each head of the cache", "Attend with some of the query heads at a time.",
     [](Op& op) {
       op.queries = planTensor(DType::f16, {2, 3, 258, 64});
     }},
    {"the sequences do not match the queries", "1 sequence", "2, as in the queries",
     "Name one sequence of the cache, and its length, for each of the queries.",
     [](Op& op) { op.sequences.pop_back(); }},
    {"the sequence is not in the cache", "sequence 4", "less than 4", "Pass a sequence that the cache holds.",
     [](Op& op) { op.sequences[1].sequence = 4; }},
    {"a sequence is longer than its cache", "a length of 7", "at most capacity 5",
     "Pass how many positions the sequence has.",
     [](Op& op) {
       viewOf(op).wrap = KVWrap::linear;
       viewOf(op).pinned = 0;
     }},
    {"a sequence has too many positions", "a length of 2147483648", "at most 2^31 - 1 positions",
     "Start the sequence again; kernels count positions up to there.",
     [](Op& op) { op.sequences[0].length = uint64_t{1} << 31; }},
    {"a sequence has fewer positions than queries", "a length of 2 and 3 rows",
     "a length that counts the rows of the queries, or 0",
     "Append keys and values of the queries' tokens first, or count them in.",
     [](Op& op) { op.sequences[1].length = 2; }},
    {"attention has no target, or two", "neither results nor partials", "a tensor for results, or for partials",
     "Pass either `into` or `partials`.", [](Op& op) { op.results.into.reset(); }},
    {"attention has no target, or two", "results and partials", "a tensor for results, or for partials",
     "Pass either `into` or `partials`.",
     [](Op& op) {
       const Tensor into = *op.results.into;
       usePartials(op);
       op.results.into = into;
     }},
    {"a result has no memory", "a tensor without memory", "tensors with memory", "Make the tensors that results go to.",
     [](Op& op) { op.results.logSumExp = Tensor(); }},
    {"a result does not match the queries", "results f16 [2, 3, 6, 32]", "f32, f16 or bf16 [2, 3, 6, 64]", kAxes,
     [](Op& op) {
       op.results.into = planTensor(DType::f16, {2, 3, 6, 32});
     }},
    {"a result does not match the queries", "sums f16 [2, 3, 6, 64]", "f32 [2, 3, 6, 64]", kAxes,
     [](Op& op) {
       usePartials(op);
       op.results.partials->sums = planTensor(DType::f16, {2, 3, 6, 64});
     }},
    {"a result does not match the queries", "stats f32 [2, 3, 6]", "f32 [2, 3, 6, 2]", kAxes,
     [](Op& op) {
       usePartials(op);
       op.results.partials->stats = planTensor(DType::f32, {2, 3, 6});
     }},
    {"a result does not match the queries", "logSumExp f32 [2, 3, 6, 1]", "f32 [2, 3, 6]", kAxes,
     [](Op& op) {
       op.results.logSumExp = planTensor(DType::f32, {2, 3, 6, 1});
     }},
    {"the scale cannot be used", "-1", kScales, "Pass a positive scale, or none for 1 / sqrt(headDim).",
     [](Op& op) { op.options.scale = -1; }},
    {"the scale cannot be used", "nan", kScales, "Pass a positive scale, or none for 1 / sqrt(headDim).",
     [](Op& op) { op.options.scale = std::numeric_limits<float>::quiet_NaN(); }},
    {"the scale cannot be used", "3e+38", kScales, "Pass a positive scale, or none for 1 / sqrt(headDim).",
     [](Op& op) { op.options.scale = 3e38f; }},
    {"the scale cannot be used", "1e-38", kScales, "Pass a positive scale, or none for 1 / sqrt(headDim).",
     [](Op& op) { op.options.scale = 1e-38f; }},
    {"the softcap cannot be used", "inf", kSoftcaps, "Pass a positive softcap, or none.",
     [](Op& op) { op.options.softcap = std::numeric_limits<float>::infinity(); }},
    {"the softcap cannot be used", "nan", kSoftcaps, "Pass a positive softcap, or none.",
     [](Op& op) { op.options.softcap = std::numeric_limits<float>::quiet_NaN(); }},
    {"the softcap cannot be used", "-2", kSoftcaps, "Pass a positive softcap, or none.",
     [](Op& op) { op.options.softcap = -2; }},
    {"the softcap cannot be used", "3e+38", kSoftcaps, "Pass a positive softcap, or none.",
     [](Op& op) { op.options.softcap = 3e38f; }},
    {"the softcap cannot be used", "1e-31", kSoftcaps, "Pass a positive softcap, or none.",
     [](Op& op) { op.options.softcap = 1e-31f; }},
    {"the window is too large", "2147483648", "less than 2^31", "Pass a smaller window, or none.",
     [](Op& op) { op.options.window = uint32_t{1} << 31; }},
    {"some sequences have a number of rows, and some have none", "1 of 2 sequences with one",
     "a number of rows for each sequence, or for none",
     "Leave out sequences without queries, and say how many rows each other one has.",
     [](Op& op) { op.sequences[0].rows = 3; }},
    {"the rows of sequences do not match the queries", "2 x 3 rows of queries",
     "1 x 6 rows, the sum of the sequences' rows", kListFix,
     [](Op& op) { op.sequences[0].rows = op.sequences[1].rows = 3; }},
    {"the rows of sequences do not match the queries", "1 x 3 rows of queries",
     "1 x 18446744073709551615 rows, the sum of the sequences' rows", kListFix,
     [](Op& op) {
       useRowsOfTheirOwn(op);
       op.sequences[0].rows = UINT64_MAX;
     }},
    {"a sequence has fewer positions than queries", "a length of 1 and 2 rows",
     "a length that counts the rows of the queries, or 0",
     "Append keys and values of the queries' tokens first, or count them in.",
     [](Op& op) {
       useRowsOfTheirOwn(op);
       op.sequences[0].length = 1;
     }},
    {"a window reaches positions that the ring has overwritten",
     "row 0 of sequence 3, whose window of 3 reaches position 3, over a ring that holds positions 4 to 6 and the "
     "first 2",
     "a capacity of at least 6", kWindowFix,
     [](Op& op) {
       useRowsOfTheirOwn(op);
       op.options.window = 3;
     }},
    {"a sequence has had fewer positions than it has", "a length of 7 and a highest of 6",
     "the largest length that the sequence has had, or 0",
     "Pass the length before tokens were taken back, or 0 if none were.", [](Op& op) { op.sequences[0].highest = 6; }},
    {"a window reaches positions that the ring has overwritten",
     "row 0 of sequence 3, whose window of 2 reaches position 3, over a ring that holds positions 4 to 6 and the "
     "first 2",
     "a capacity of at least 6", kWindowFix, [](Op& op) { op.options.window = 2; }},
    {"a window reaches positions that the ring has overwritten",
     "row 1 of sequence 1, whose window of 1000 reaches position 2, over a ring that holds the first 2 "
     "alone",
     "a capacity of at least 8", kWindowFix,
     [](Op& op) {
       op.sequences = {{3, 3}, {1, 4, 8}};
       op.options.window = 1000;
     }},
    {"a mask cannot serve sequences that have numbers of rows", "a mask, and 2 sequences with numbers of rows",
     "a mask for sequences that all have the rows of the queries' shape",
     "Attend without a mask, or to sequences of as many rows at a time.",
     [](Op& op) {
       useRowsOfTheirOwn(op);
       op.options.mask = planTensor(DType::f32, {3, 5});
     }},
    {"the mask does not match the queries", "f32 [3, 4]", kMaskDue, kMaskFix,
     [](Op& op) {
       op.options.mask = planTensor(DType::f32, {3, 4});
     }},
    {"the mask does not match the queries", "u8 [3, 5]", kMaskDue, kMaskFix,
     [](Op& op) {
       op.options.mask = planTensor(DType::u8, {3, 5});
     }},
    {"the mask does not match the queries", "f16 [2, 3, 5]", kMaskDue, kMaskFix,
     [](Op& op) {
       op.options.mask = planTensor(DType::f16, {2, 3, 5});
     }},
    {"slopes do not match the queries", "f32 [2]", "f32 [6]", "Pass a slope for each head.",
     [](Op& op) { op.options.slopes = planTensor(DType::f32, {2}); }},
    {"sinks do not match the queries", "f16 [6]", "f32 [6]", "Pass a sink for each head.",
     [](Op& op) { op.options.sinks = planTensor(DType::f16, {6}); }},
    {"partials cannot have sinks", "sinks, and partials as the target", "sinks once, where all parts are merged",
     "Pass sinks to MergePartials.",
     [](Op& op) {
       usePartials(op);
       op.options.sinks = planTensor(DType::f32, {6});
     }},
    {"there are too many splits", "1025", "at most 1024", "Pass fewer splits, or none for as many as the device needs.",
     [](Op& op) { op.options.splits = 1025; }},
    {kNoMatrices, "f16 with head dims 64 and 64, with a mask", kMatrixDue, "Let the kernel be chosen.",
     [](Op& op) {
       op.options.kernel = FlashDecodeKernel::matrix;
       op.options.mask = planTensor(DType::f16, {3, 5});
     }},
    {kNoMatrices, "bf16 with head dims 64 and 64", kMatrixDue, "Let the kernel be chosen.",
     [](Op& op) {
       op.options.kernel = FlashDecodeKernel::matrix;
       viewOf(op).keys = planTensor(DType::bf16, {4, 2, 5, 64});
       viewOf(op).values = planTensor(DType::bf16, {4, 2, 5, 64});
     }},
    {"scratch memory is not of bytes", "f32 [100000]", "u8",
     "Make it as long as the plan's scratchBytes, or leave it out.",
     [](Op& op) { op.scratch = planTensor(DType::f32, {100000}); }},
    {"operands share memory", "queries overlapping results", "separate memory", "Write results to memory of their own.",
     [](Op& op) { op.results.into = op.queries.tensor; }},
    {"operands share memory", "the value cache overlapping results", "separate memory",
     "Write results to memory of their own.",
     [](Op& op) {
       op.results.into =
           REQUIRE(Tensor::over(viewOf(op).values->buffer(), DType::f16, REQUIRE(Shape::make({2, 3, 6, 64}))));
     }},
};

}  // namespace

TEST(FlashDecodeRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(flashDecodeRules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<Op>(flashDecodeRules(), kBroken);
}

TEST(FlashDecodeRules, SequencesMayHaveRowsOfTheirOwn) {
  Op op = soundOp();
  useRowsOfTheirOwn(op);
  EXPECT(bool(plan(op)));
  op.options.window = 2;  // of the two rows of the first sequence; of three it would reach a lost position
  EXPECT(bool(plan(op)));
  op.results.into = planTensor(DType::f16, {2, 3, 6, 64});
  EXPECT_ERROR(plan(op), {.op = Op::name, .expected = "f32, f16 or bf16 [3, 6, 64] or [1, 3, 6, 64]"});
}

// Where attention does not depend on positions, rows need none.
TEST(FlashDecodeRules, RowsWithoutPositionsNeedNoKeysOfTheirOwn) {
  Op op = soundOp();
  op.sequences[1].length = 1;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "a sequence has fewer positions than queries"});
  op.options.slopes.reset();
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "a sequence has fewer positions than queries"});
  op.options.isCausal = false;
  EXPECT(bool(plan(op)));
  op.options.window = 1;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "a sequence has fewer positions than queries"});
  op.sequences[1].length = 0;
  EXPECT(bool(plan(op)));
}

}  // namespace mnk::test
