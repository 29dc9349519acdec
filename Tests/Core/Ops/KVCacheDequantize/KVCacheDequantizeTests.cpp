// KVCacheDequantize on every device against the meaning of bytes and scales that the tests make up, and its rules.
#include "KVCacheDequantizeRun.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantize.hpp"

namespace mnk::test {

namespace {

QuantizedKVPlane planeOf(const KVCodec& codec, uint64_t headDim) {
  const KVCodecSizes row = REQUIRE(sizes(codec, headDim));
  return {.codec = codec, .codes = u8(2, 3, 5, row.codeBytes), .scales = planTensor(codec.scaleType(), {2, 3, 5})};
}

constexpr KVCodec kMlx1{.name = KVCodec::Name::mlx1};

void setTargets(KVCacheDequantize& op, uint64_t keyDim, uint64_t valueDim) {
  op.keys = f16(2, 3, keyDim);
  op.values = f16(2, 3, valueDim);
}

// Two tokens of a ring of five slots, two of them pinned; keys of 128, values of 64.
KVCacheDequantize soundDequantize() {
  KVCacheDequantize op{.from = {.keys = planeOf({.bits = 5}, 128),
                                .values = planeOf({.bits = 3}, 64),
                                .wrap = KVWrap::ring,
                                .pinned = 2},
                       .sequence = 1,
                       .position = 7};
  setTargets(op, 128, 64);
  return op;
}

const Break<KVCacheDequantize> kBrokenDequantizations[] = {
    [](KVCacheDequantize& op) { op.keys.reset(), op.values.reset(); },
    [](KVCacheDequantize& op) { op.keys = Tensor(); },
    [](KVCacheDequantize& op) { op.values = Tensor(); },
    [](KVCacheDequantize& op) { op.from.values.reset(); },
    [](KVCacheDequantize& op) { op.domain = KVDomain(9); },
    [](KVCacheDequantize& op) { op.layout = KVLayout(9); },
    [](KVCacheDequantize& op) { op.values = u8(2, 3, 64); },
    [](KVCacheDequantize& op) { op.values = f32(2, 3, 64); },
    [](KVCacheDequantize& op) { op.keys = f16(2, 3, 64); },
    [](KVCacheDequantize& op) { op.values = f16(1, 2, 3, 1, 64); },
    [](KVCacheDequantize& op) { op.values = f16(1, 3, 64); },
    [](KVCacheDequantize& op) { op.values = f16(2, 1, 3, 64); },
    [](KVCacheDequantize& op) {
      op.from.keys = planeOf(kMlx1, 4), op.from.values = planeOf(kMlx1, 4096), setTargets(op, 4, 4096);
    },
    [](KVCacheDequantize& op) { op.sequence = 2; },
    [](KVCacheDequantize& op) { op.sequence = kOnlySequence; },
    [](KVCacheDequantize& op) { op.from.pinned = 5; },
    [](KVCacheDequantize& op) { op.values.reset(), op.keys = f16(6, 3, 128), op.position = 0; },
    [](KVCacheDequantize& op) { op.from.wrap = KVWrap::linear, op.from.pinned = 0, op.position = 4; },
    [](KVCacheDequantize& op) { op.position = UINT64_MAX; },
    [](KVCacheDequantize& op) { op.keys = aliased(op.from.keys.codes, f16(2, 3, 128)); },
};

constexpr GoldenText kDequantizeErrors{
    "Ops/KVCacheDequantize/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(KVCacheDequantize, FollowsTheReference) {
  Seeded random(4, 4);
  std::vector<KVCacheDequantizeCase> cases;
  std::vector<DrawnCoding> seen;
  for (uint64_t i = 0; i < 900 || !codingsOtherThan(seen).empty(); ++i) {
    KVCacheDequantizeCase& read = cases.emplace_back(drawnDequantize(random));
    const KVCacheWriteCase& slots = read.stored.write;
    read.name = fmt::format("case {}: {} at {} and {} at {}", i, read.stored.keyCodec.text(), slots.headDim,
                            read.stored.valueCodec.text(), slots.valueHeadDim);
    if (slots.heads == 0 || slots.sourceTokens == 0) continue;
    const KVCacheQuantizeCase& stored = read.stored;
    if (read.reads != KVReads::values && !stored.hasDenseKeys) seen.push_back({stored.keyCodec, slots.headDim});
    if (read.reads != KVReads::keys && !stored.hasDenseValues) seen.push_back({stored.valueCodec, slots.valueHeadDim});
  }
  runOnEveryDevice(cases);
}

TEST(KVCacheDequantizeRules, EachHasItsError) {
  expectRules<KVCacheDequantize>(kDequantizeErrors, kvCacheDequantizeRules(), soundDequantize(),
                                 kBrokenDequantizations);
}

// Means belong to the original domain.
TEST(KVCacheDequantizeRules, MeansAreIgnoredInTheRotatedDomain) {
  KVCacheDequantize op = soundDequantize();
  op.from.keys.means = aliased(*op.keys, f32(3, 128));
  EXPECT_ERROR(plan(op), {.op = KVCacheDequantize::name, .what = "operands share memory"});
  op.domain = KVDomain::rotated;
  REQUIRE(plan(op));
}

TEST(KVCacheDequantizeRules, TheCacheMustBeOne) {
  KVCacheDequantize op = soundDequantize();
  op.from.keys.codec.bits = 6;
  EXPECT_ERROR(plan(op), {.op = KVCacheDequantize::name, .what = "the codec has no codes of this length"});
  op = soundDequantize();
  op.values.reset();
  op.from.values.reset();
  op.from.keys.codes = u8(2, 3, k2To31, 80);
  op.from.keys.scales = f16(2, 3, k2To31);
  EXPECT_ERROR(plan(op), {.op = KVCacheDequantize::name, .what = "an extent is too large for the kernel"});
}

}  // namespace mnk::test
