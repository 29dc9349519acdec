// Every rule of KVCacheDequantize, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"

namespace mnk::test {

namespace {

using Op = KVCacheDequantize;

QuantizedKVPlane planeOf(const KVCodec& codec, uint64_t headDim) {
  const KVCodecSizes row = REQUIRE(sizes(codec, headDim));
  return {.codec = codec,
          .codes = planTensor(DType::u8, {2, 3, 5, row.codeBytes}),
          .scales = planTensor(codec.scaleType(), {2, 3, 5})};
}

// Two tokens of a ring of five slots, two of them pinned; keys of 128, values of 64.
Op soundOp() {
  Op op{.from = {.keys = planeOf({.bits = 5}, 128),
                 .values = planeOf({.bits = 3}, 64),
                 .wrap = KVWrap::ring,
                 .pinned = 2},
        .sequence = 1,
        .position = 7};
  op.keys = planTensor(DType::f16, {2, 3, 128});
  op.values = planTensor(DType::f16, {2, 3, 64});
  return op;
}

constexpr std::string_view kReshape =
    "Reshape the target: [tokens, heads, headDim], or [heads, tokens, headDim] where it is head-major.";

const BrokenRule<Op> kBroken[] = {
    {"there is nothing to read into", "neither keys nor values", "a tensor for keys, for values, or for both",
     "Pass the tensors that results go to.",
     [](Op& op) {
       op.keys.reset();
       op.values.reset();
     }},
    {"a target has no memory", "keys without memory", "tensors with memory",
     "Make the tensors before reading into them.", [](Op& op) { op.keys = Tensor(); }},
    {"a target has no memory", "values without memory", "tensors with memory",
     "Make the tensors before reading into them.", [](Op& op) { op.values = Tensor(); }},
    {"values are asked for but the cache has none", "values, and a cache of keys alone", "a cache with values",
     "Read keys alone.", [](Op& op) { op.from.values.reset(); }},
    {"the target cannot hold numbers", "u8", "f32, f16 or bf16", "Make tensors of floats.",
     [](Op& op) {
       op.values = planTensor(DType::u8, {2, 3, 64});
     }},
    {"values have another dtype than keys", "f32", "f16, as for keys", "Use one dtype for both, or two ops.",
     [](Op& op) {
       op.values = planTensor(DType::f32, {2, 3, 64});
     }},
    {"a target does not have the cache's heads and headDim", "3 heads of 64 in token-major [2, 3, 64]",
     "3 heads of 128", kReshape,
     [](Op& op) {
       op.keys = planTensor(DType::f16, {2, 3, 64});
     }},
    {"a target does not have the cache's heads and headDim", "0 heads of 0 in token-major [1, 2, 3, 1, 64]",
     "3 heads of 64", kReshape,
     [](Op& op) {
       op.values = planTensor(DType::f16, {1, 2, 3, 1, 64});
     }},
    {"keys and values hold different numbers of tokens", "1 tokens of values", "2 tokens, as for keys",
     "Pass tensors for the same tokens.",
     [](Op& op) {
       op.values = planTensor(DType::f16, {1, 3, 64});
     }},
    {"keys and values hold different numbers of tokens", "2 x 1 tokens of values", "2 tokens, as for keys",
     "Pass tensors for the same tokens.",
     [](Op& op) {
       op.values = planTensor(DType::f16, {2, 1, 3, 64});
     }},
    {"head dims of keys and values are too different", "4 and 4096", "at most 32 times the other",
     "Use one op for keys and one for values.",
     [](Op& op) {
       op.from.keys = planeOf({.name = KVCodecName::mlx1}, 4);
       op.from.values = planeOf({.name = KVCodecName::mlx1}, 4096);
       op.keys = planTensor(DType::f16, {2, 3, 4});
       op.values = planTensor(DType::f16, {2, 3, 4096});
     }},
    {"the sequence is not in the cache", "sequence 2", "less than 2", "Pass a sequence that the cache holds.",
     [](Op& op) { op.sequence = 2; }},
    {"the cache has no room for its pinned slots", "5 pinned slots in a ring of 5",
     "fewer pinned slots than the ring's capacity, and none in a linear cache",
     "Pin fewer slots, or make the cache a larger ring.", [](Op& op) { op.from.pinned = 5; }},
    {"the cache does not hold these positions", "position 0 + 6 tokens", "positions that 5 slots can hold together",
     "Read fewer positions at a time.",
     [](Op& op) {
       op.values.reset();
       op.keys = planTensor(DType::f16, {6, 3, 128});
       op.position = 0;
     }},
    {"the cache does not hold these positions", "position 4 + 2 tokens", "positions that 5 slots can hold together",
     "Read fewer positions at a time.",
     [](Op& op) {
       op.from.wrap = KVWrap::linear;
       op.from.pinned = 0;
       op.position = 4;
     }},
    {"the cache does not hold these positions", "position 18446744073709551615 + 2 tokens",
     "positions that 5 slots can hold together", "Read fewer positions at a time.",
     [](Op& op) { op.position = UINT64_MAX; }},
    {"operands share memory", "codes overlapping keys", "separate memory",
     "Read into tensors that are not part of the cache.",
     [](Op& op) {
       op.keys = REQUIRE(Tensor::over(op.from.keys.codes.buffer(), DType::f16, REQUIRE(Shape::make({2, 3, 128}))));
     }},
};

}  // namespace

TEST(KVCacheDequantizeRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(kvCacheDequantizeRules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<Op>(kvCacheDequantizeRules(), kBroken);
}

TEST(KVCacheDequantizeRules, TheCacheMustBeOne) {
  Op op = soundOp();
  op.from.keys.codec.bits = 6;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "the codec has no codes of this length"});
  op = soundOp();
  op.values.reset();
  op.from.values.reset();
  op.from.keys.codes = planTensor(DType::u8, {2, 3, uint64_t{1} << 31, 80});
  op.from.keys.scales = planTensor(DType::f16, {2, 3, uint64_t{1} << 31});
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "an extent is too large for the kernel"});
}

}  // namespace mnk::test
