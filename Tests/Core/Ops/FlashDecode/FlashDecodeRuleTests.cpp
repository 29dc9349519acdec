// Every rule of FlashDecode and of the caches that it attends to, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"

namespace mnk::test {

namespace {

using Op = FlashDecode;
using View = KVCacheView;

// Two sequences of three rows and six heads, over a ring of five slots, two of them pinned, of two heads.
Op soundAttention() {
  Op op{.queries = f16(2, 3, 6, 64),
        .cache = View{.keys = f16(4, 2, 5, 64), .values = f16(4, 2, 5, 64), .wrap = KVWrap::ring, .pinned = 2}};
  op.sequences = {{3, 7}, {1, 4}};
  op.results = {.output = f16(2, 3, 6, 64), .logSumExp = f32(2, 3, 6)};
  op.options.slopes = f32(6);
  return op;
}

View& viewOf(Op& op) {
  return std::get<View>(op.cache);
}
QuantizedKVCacheView& codesOf(Op& op) {
  return std::get<QuantizedKVCacheView>(op.cache);
}

void useCache(Op& op, const Tensor& keys) {
  viewOf(op).keys = keys;
  viewOf(op).values = planTensor(keys.dtype(), keys.shape());
}
void useMatrices(Op& op) {
  op.options.kernel = AttentionOptions::Kernel::matrix;
}

void usePartials(Op& op) {
  op.results = {.partials = AttentionPartials{.sums = f32(2, 3, 6, 64), .stats = f32(2, 3, 6, 2)}};
  for (AttendedSequence& each : op.sequences) each.position = each.length;
}

void useWindowAlone(Op& op) {
  op.options.isCausal = false, op.options.slopes.reset();
  op.options.window = 1;
}

// A codec of turbo for keys and values of head dim 128.
void useCodes(Op& op) {
  const auto plane = [] {
    return QuantizedKVPlane{.codec = {.bits = 4}, .codes = u8(4, 2, 5, 64), .scales = f16(4, 2, 5)};
  };
  op.cache = QuantizedKVCacheView{.keys = plane(), .values = plane()};
  op.sequences = {{3, 5}, {1, 4}};
  op.queries = f16(2, 3, 6, 128);
  op.results.output = f16(2, 3, 6, 128);
}

// A latent part of 512 in values, and 64 behind it in keys.
void useLatent(Op& op) {
  viewOf(op).latentDim = 512;
  viewOf(op).values = f16(4, 2, 5, 512);
  op.queries = f16(2, 3, 6, 576);
  op.results.output = f16(2, 3, 6, 512);
  op.options.scale = 0.1f;
}

// Sequences of two rows and one, in a list.
void useRowsOfTheirOwn(Op& op) {
  op.queries = f16(3, 6, 64);
  op.sequences = {{3, 7, 0, 2}, {1, 4, 0, 1}};
  op.results = {.output = f16(3, 6, 64)};
}

const Break<View> kBrokenViews[] = {
    [](View& v) { v.keys = {}; },
    [](View& v) { v.values = Tensor(); },
    [](View& v) { v.values.reset(); },
    [](View& v) { v.keys = f16(5, 64); },
    [](View& v) { v.layout = KVLayout::tokenMajor, v.values = f16(2, 5, 64); },
    [](View& v) { v.values = f32(4, 2, 5, 64); },
    [](View& v) { v.keys = u8(4, 2, 5, 64), v.values = v.keys; },
    [](View& v) { v.keys = f16(4, 2, 0, 64); },
    [](View& v) { v.values = f16(4, 2, 6, 64); },
    [](View& v) { v.latentDim = 512; },
    [](View& v) { v.latentDim = 64, v.values.reset(); },
    [](View& v) { v.keys = f16(5, 64), v.latentDim = 32, v.values.reset(); },
};

const Break<Op> kBroken[] = {
    [](Op& op) { op.queries = {}; },
    [](Op& op) { op.queries.layout = static_cast<KVLayout>(2); },
    [](Op& op) { op.queries = f16(64); },
    [](Op& op) { op.queries = HeadsView(f16(6, 64), KVLayout::headMajor); },
    [](Op& op) { op.queries.strides = op.queries.resolved(), op.queries.strides->offset = 1; },
    [](Op& op) { op.queries = u16(2, 3, 6, 64); },
    [](Op& op) { useCache(op, f16(4, 2, k2To31, 64)); },
    [](Op& op) { viewOf(op).pinned = 5; },
    [](Op& op) { viewOf(op).wrap = KVWrap::linear; },
    [](Op& op) { op.queries = f16(2, 3, 6, 128); },
    [](Op& op) { viewOf(op).values = f16(4, 2, 5, 36); },
    [](Op& op) { useCodes(op), codesOf(op).keys.codes = u8(4, 2, 5, 256), op.queries = f16(2, 3, 6, 512); },
    [](Op& op) { useLatent(op), op.queries = f16(2, 3, 6, 64); },
    [](Op& op) { useLatent(op), viewOf(op).keys = f16(4, 2, 5, 32), op.queries = f16(2, 3, 6, 544); },
    [](Op& op) { useLatent(op), op.options.scale = 0; },
    [](Op& op) { op.queries = f16(2, 6, 3, 64); },
    [](Op& op) { op.queries = f16(2, 3, 7, 64); },
    [](Op& op) { op.queries = f16(2, 3, 258, 64); },
    [](Op& op) { op.sequences.pop_back(); },
    [](Op& op) { op.sequences[1].sequence = 4; },
    [](Op& op) { op.sequences[1].sequence = kOnlySequence; },
    [](Op& op) { viewOf(op).wrap = KVWrap::linear, viewOf(op).pinned = 0; },
    [](Op& op) { op.sequences[0].length = k2To31; },
    [](Op& op) { op.sequences[1].length = 2; },
    [](Op& op) { op.sequences[1].position = k2To31 - 3; },
    [](Op& op) { op.sequences[1].position = INT64_MIN; },
    [](Op& op) { usePartials(op), op.sequences[1].position.reset(); },
    [](Op& op) { op.results.output.reset(); },
    [](Op& op) { usePartials(op), op.results.output = f16(2, 3, 6, 64); },
    [](Op& op) { op.results.logSumExp = Tensor(); },
    [](Op& op) { op.results.output = f16(2, 3, 6, 32); },
    [](Op& op) { usePartials(op), op.results.partials->sums = f16(2, 3, 6, 64); },
    [](Op& op) { usePartials(op), op.results.partials->stats = f32(2, 3, 6); },
    [](Op& op) { op.results.logSumExp = f32(2, 3, 6, 1); },
    // Where attention depends on positions. Without, rows need none.
    [](Op& op) { op.sequences[1].length = 1, op.options.slopes.reset(); },
    [](Op& op) { op.sequences[1].length = 1, op.options.isCausal = false; },
    [](Op& op) { op.sequences[1].length = 1, useWindowAlone(op); },
    [](Op& op) { op.sequences[0].rows = 3; },
    [](Op& op) { op.sequences[0].rows = op.sequences[1].rows = 3; },
    [](Op& op) { useRowsOfTheirOwn(op), op.sequences[0].rows = UINT64_MAX; },
    [](Op& op) { useRowsOfTheirOwn(op), op.sequences[0].length = 1; },
    [](Op& op) { useRowsOfTheirOwn(op), op.results.output = f16(2, 3, 6, 64); },
    [](Op& op) { useRowsOfTheirOwn(op), op.options.window = 3; },
    [](Op& op) { op.sequences[0].highest = 6; },
    [](Op& op) { op.options.window = 2; },
    [](Op& op) { op.sequences[0].position = 9, op.options.window = 8; },
    [](Op& op) { op.sequences[0].length = 3, op.sequences[1].highest = 8, op.options.window = 1000; },
    [](Op& op) { useRowsOfTheirOwn(op), op.options.mask = f32(3, 5); },
    [](Op& op) { op.options.mask = f32(3, 4); },
    [](Op& op) { op.options.mask = u8(3, 5); },
    [](Op& op) { op.options.mask = f16(2, 3, 5); },
    [](Op& op) { op.options.slopes = f32(2); },
    [](Op& op) { op.options.sinks = f16(6); },
    [](Op& op) { usePartials(op), op.options.sinks = f32(6); },
    [](Op& op) { op.options.kernel = AttentionOptions::Kernel(9); },
    [](Op& op) { op.options.merge = AttentionOptions::Merge(9); },
    [](Op& op) { useMatrices(op), op.options.mask = f16(3, 5); },
    [](Op& op) { useMatrices(op), useCache(op, bf16(4, 2, 5, 64)); },
    [](Op& op) { useCodes(op), codesOf(op).latentDim = 512; },
    [](Op& op) { useCodes(op), codesOf(op).values.reset(); },
    [](Op& op) { useCodes(op), codesOf(op).keys.codec.bits = 9; },
    [](Op& op) { op.scratch = f32(100000); },
    [](Op& op) { op.results.output = op.queries.tensor; },
    [](Op& op) { op.results.output = aliased(*viewOf(op).values, f16(2, 3, 6, 64)); },
    [](Op& op) { op.scratch = aliased(op.queries.tensor, u8(64)); },
};

constexpr GoldenText kAttentionErrors{
    "Ops/FlashDecode/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(FlashDecodeRules, EachHasItsError) {
  std::vector<Break<Op>> broken(std::begin(kBroken), std::end(kBroken));
  for (const NumberOption& option : numberOptions()) {
    for (const double number : option.invalid) {
      broken.push_back([&option, number](Op& op) { option.set(op.options, number); });
    }
  }
  Op coded = soundAttention(), ragged = soundAttention();
  useCodes(coded), useRowsOfTheirOwn(ragged);
  ragged.options.window = 2;  // of the two rows of the first sequence; of three it would reach a lost position
  for (const Op& op : {soundAttention(), coded, ragged}) EXPECT(bool(plan(op)));
  // Of those of quantized caches, the tests of KVCacheQuantize break all.
  std::vector<std::string_view> texts = textsOf(queryRules(), attentionRules());
  texts.insert(texts.end(), {"the latent part does not match the cache", "the cache has no values",
                             "the codec has no codes of this length"});
  ErrorLines errors;
  expectRules<View>(errors, attendedCacheRules(), Op::name, View{.keys = f16(4, 2, 5, 64), .values = f16(4, 2, 5, 64)},
                    kBrokenViews, [](const View& view) {
                      Op op = soundAttention();
                      op.cache = view;
                      return plan(op);
                    });
  expectRules<Op>(errors, texts, Op::name, soundAttention(), broken, [](const Op& op) { return plan(op); });
  expectGolden(kAttentionErrors, errors.lines());
}

}  // namespace mnk::test
