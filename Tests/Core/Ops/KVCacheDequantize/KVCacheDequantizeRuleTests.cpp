// Every rule of KVCacheDequantize, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRules.hpp"

namespace mnk::test {

namespace {

using Op = KVCacheDequantize;

QuantizedKVPlane planeOf(const KVCodec& codec, uint64_t headDim) {
  const KVCodecSizes row = REQUIRE(sizes(codec, headDim));
  return {.codec = codec, .codes = u8(2, 3, 5, row.codeBytes), .scales = planTensor(codec.scaleType(), {2, 3, 5})};
}

constexpr KVCodec kMlx1{.name = KVCodecName::mlx1};

void setTargets(Op& op, uint64_t keyDim, uint64_t valueDim) {
  op.keys = f16(2, 3, keyDim);
  op.values = f16(2, 3, valueDim);
}

// Two tokens of a ring of five slots, two of them pinned; keys of 128, values of 64.
Op soundOp() {
  Op op{.from = {.keys = planeOf({.bits = 5}, 128),
                 .values = planeOf({.bits = 3}, 64),
                 .wrap = KVWrap::ring,
                 .pinned = 2},
        .sequence = 1,
        .position = 7};
  setTargets(op, 128, 64);
  return op;
}

const Break<Op> kBroken[] = {
    [](Op& op) { op.keys.reset(), op.values.reset(); },
    [](Op& op) { op.keys = Tensor(); },
    [](Op& op) { op.values = Tensor(); },
    [](Op& op) { op.from.values.reset(); },
    [](Op& op) { op.domain = KVDomain(9); },
    [](Op& op) { op.layout = KVLayout(9); },
    [](Op& op) { op.values = u8(2, 3, 64); },
    [](Op& op) { op.values = f32(2, 3, 64); },
    [](Op& op) { op.keys = f16(2, 3, 64); },
    [](Op& op) { op.values = f16(1, 2, 3, 1, 64); },
    [](Op& op) { op.values = f16(1, 3, 64); },
    [](Op& op) { op.values = f16(2, 1, 3, 64); },
    [](Op& op) { op.from.keys = planeOf(kMlx1, 4), op.from.values = planeOf(kMlx1, 4096), setTargets(op, 4, 4096); },
    [](Op& op) { op.sequence = 2; },
    [](Op& op) { op.sequence = kOnlySequence; },
    [](Op& op) { op.from.pinned = 5; },
    [](Op& op) { op.values.reset(), op.keys = f16(6, 3, 128), op.position = 0; },
    [](Op& op) { op.from.wrap = KVWrap::linear, op.from.pinned = 0, op.position = 4; },
    [](Op& op) { op.position = UINT64_MAX; },
    [](Op& op) { op.keys = aliased(op.from.keys.codes, f16(2, 3, 128)); },
};

constexpr GoldenText kGolden{
    "Ops/KVCacheDequantize/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(KVCacheDequantizeRules, EachHasItsError) {
  ErrorLines errors;
  expectRules<Op>(errors, kvCacheDequantizeRules(), Op::name, soundOp(), kBroken,
                  [](const Op& op) { return plan(op); });
  expectGolden(kGolden, errors.lines());
}

// Means belong to the original domain.
TEST(KVCacheDequantizeRules, MeansAreIgnoredInTheRotatedDomain) {
  Op op = soundOp();
  op.from.keys.means = aliased(*op.keys, f32(3, 128));
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "operands share memory"});
  op.domain = KVDomain::rotated;
  REQUIRE(plan(op));
}

TEST(KVCacheDequantizeRules, TheCacheMustBeOne) {
  Op op = soundOp();
  op.from.keys.codec.bits = 6;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "the codec has no codes of this length"});
  op = soundOp();
  op.values.reset();
  op.from.values.reset();
  op.from.keys.codes = u8(2, 3, k2To31, 80);
  op.from.keys.scales = f16(2, 3, k2To31);
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "an extent is too large for the kernel"});
}

}  // namespace mnk::test
