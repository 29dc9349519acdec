// Every rule of caches that FlashDecode attends to, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/FlashDecode/FlashDecodeRules.hpp"

namespace mnk::test {

namespace {

using Op = FlashDecode;
using View = KVCacheView;

// Six heads of one token over a cache of four sequences, two heads and five slots.
Op soundOp() {
  Op op{.queries = planTensor(DType::f16, {6, 64}),
        .over = View{.keys = planTensor(DType::f16, {4, 2, 5, 64}), .values = planTensor(DType::f16, {4, 2, 5, 64})}};
  op.sequences = {{3, 4}};
  op.results.into = planTensor(DType::f16, {6, 64});
  return op;
}

constexpr std::string_view kLatentMisfit = "the latent part does not match the cache";
constexpr std::string_view kLatentFix = "Pass the length of the part of a key that is its value, too.";
constexpr std::string_view kMakeFirst = "Make the cache's tensors before using it.";

const BrokenRule<View> kBrokenViews[] = {
    {"the cache has no memory", "a key cache without memory", "tensors with memory", kMakeFirst,
     [](View& v) { v.keys = {}; }},
    {"the cache has no memory", "a value cache without memory", "tensors with memory", kMakeFirst,
     [](View& v) { v.values = Tensor(); }},
    {"the cache has no values", "keys alone", "keys and values",
     "Give the view a tensor for values, or the latent part of keys that are values too.",
     [](View& v) { v.values.reset(); }},
    {"the cache has the wrong rank", "keys [5, 64], values [4, 2, 5, 64]",
     "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]",
     "Reshape the cache; keys and values need the same rank.",
     [](View& v) {
       v.keys = planTensor(DType::f16, {5, 64});
     }},
    {"the cache has the wrong rank", "keys [4, 2, 5, 64], values [2, 5, 64]",
     "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]",
     "Reshape the cache; keys and values need the same rank.",
     [](View& v) {
       v.layout = KVLayout::tokenMajor;
       v.values = planTensor(DType::f16, {2, 5, 64});
     }},
    {"the cache does not hold numbers of one type", "keys of f16, values of f32", "f32, f16 or bf16, the same for both",
     "Store keys and values as floats of one type, or pass a quantized view.",
     [](View& v) {
       v.values = planTensor(DType::f32, {4, 2, 5, 64});
     }},
    {"the cache does not hold numbers of one type", "keys of u8, values of u8", "f32, f16 or bf16, the same for both",
     "Store keys and values as floats of one type, or pass a quantized view.",
     [](View& v) {
       v.keys = planTensor(DType::u8, {4, 2, 5, 64});
       v.values = v.keys;
     }},
    {"the cache has no capacity", "head-major [4, 2, 0, 64]", "at least one slot",
     "Make a cache with a capacity of at least 1.",
     [](View& v) {
       v.keys = planTensor(DType::f16, {4, 2, 0, 64});
     }},
    {"the value cache differs from the key cache", "[4, 2, 6, 64]", "[4, 2, 5, 64], but for headDim",
     "Make both with the same sequences, heads and capacity.",
     [](View& v) {
       v.values = planTensor(DType::f16, {4, 2, 6, 64});
     }},
    {kLatentMisfit, "a latent part of 512, keys [4, 2, 5, 64], values [4, 2, 5, 64]",
     "values of that length, or keys that are longer", kLatentFix, [](View& v) { v.latentDim = 512; }},
    {kLatentMisfit, "a latent part of 64, keys [4, 2, 5, 64]", "values of that length, or keys that are longer",
     kLatentFix,
     [](View& v) {
       v.latentDim = 64;
       v.values.reset();
     }},
    {"the cache has the wrong rank", "keys [5, 64]",
     "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]",
     "Reshape the cache; keys and values need the same rank.",
     [](View& v) {
       v.keys = planTensor(DType::f16, {5, 64});
       v.latentDim = 32;
       v.values.reset();
     }},
};

}  // namespace

TEST(FlashDecodeCacheRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBrokenViews) {
    Op op = soundOp();
    View& view = std::get<View>(op.over);
    broken.breakIn(view);
    expectBroken(attendedCacheRules(), view, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<View>(attendedCacheRules(), kBrokenViews);
}

TEST(FlashDecodeCacheRules, AQuantizedCacheFollowsItsOwnRules) {
  const auto plane = [] {
    return QuantizedKVPlane{.codec = {.bits = 4},
                            .codes = planTensor(DType::u8, {4, 2, 5, 32}),
                            .scales = planTensor(DType::f16, {4, 2, 5})};
  };
  Op op = soundOp();
  op.over = QuantizedKVCacheView{.keys = plane(), .values = plane()};
  EXPECT(bool(plan(op)));
  auto& view = std::get<QuantizedKVCacheView>(op.over);
  view.latentDim = 512;
  EXPECT_ERROR(plan(op), {.op = Op::name,
                          .what = kLatentMisfit,
                          .got = "a latent part of 512, values of 64",
                          .expected = "values of that length",
                          .fix = kLatentFix});
  view.values.reset();
  EXPECT_ERROR(plan(op), {.op = Op::name,
                          .what = "the cache has no values",
                          .got = "keys alone",
                          .expected = "keys and values",
                          .fix = "Give the view a plane of values."});
  view.keys.codec.bits = 9;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "the codec has no codes of this length"});
}

}  // namespace mnk::test
