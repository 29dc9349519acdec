// Every rule of quantized caches and of KVCacheQuantize, broken on purpose.
#include <cmath>

#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantize.hpp"

namespace mnk::test {

namespace {

using View = QuantizedKVCacheView;

QuantizedKVPlane fakePlane(const KVCodec& codec, uint64_t headDim, uint64_t capacity = 5) {
  const KVCodecSizes row = REQUIRE(sizes(codec, headDim));
  QuantizedKVPlane plane{.codec = codec};
  plane.codes = u8(2, 3, capacity, row.codeBytes);
  plane.scales =
      row.scales == 1 ? planTensor(codec.scaleType(), {2, 3, capacity}) : planTensor(codec.scaleType(), {2, 3, 5, 2});
  return plane;
}

KVCodec mlx1(float scaleFactor = 1, uint32_t bits = 4) {
  return {.name = KVCodec::Name::mlx1, .bits = bits, .scaleFactor = scaleFactor};
}
QuantizedKVPlane dense(const Tensor& elements) {
  return {.codes = elements};
}
View keysAlone(const QuantizedKVPlane& keys) {
  return {.keys = keys};
}

// Two sequences, three heads and five slots; keys of 128 in 5 bits, values of 64 in 3.
View soundView() {
  return {.keys = fakePlane({.bits = 5}, 128), .values = fakePlane({.bits = 3}, 64)};
}

KVCacheQuantize soundQuantize() {
  KVCacheQuantize op{.keys = f16(2, 3, 128), .values = f16(2, 3, 64), .into = soundView()};
  op.sequence = 1;
  op.position = 2;
  return op;
}

void useMlx1(KVCacheQuantize& op, uint64_t tokens = 1, uint64_t headDim = 512) {
  op.keys = f16(tokens, 3, headDim);
  op.values.reset();
  op.into = keysAlone(fakePlane(mlx1(), headDim));
}

const Break<View> kBrokenViews[] = {
    [](View& v) { v.keys.codes = {}; },
    [](View& v) { v.values->scales = {}; },
    [](View& v) { v.keys.codes = u8(5, 80); },
    [](View& v) { v.values->codes = u8(3, 5, 24); },
    [](View& v) { v.keys = dense(f16(2, 3, 5, 128)), v.values = dense(f16(2, 3, 5, 64)); },
    [](View& v) { v = keysAlone(dense(f32(2, 3, 5, 128))); },
    [](View& v) { v.keys.codes = bf16(2, 3, 5, 128); },
    [](View& v) { v.values = dense(f16(2, 3, 5, 64)), v.values->means = f32(3, 64); },
    [](View& v) { v.keys = dense(f32(2, 3, 5, 128)), v.keys.channelScales = f32(3, 128); },
    [](View& v) { v.keys = dense(f16(2, 3, 5, 120)); },
    [](View& v) { v.values = dense(f16(2, 3, 5, 1024)); },
    [](View& v) { v.keys.codes = u16(2, 3, 5, 40); },
    [](View& v) { v.values->codec = mlx1(); },
    [](View& v) { v.keys.codes = u8(2, 3, 5, 81); },
    [](View& v) { v.values->codec.bits = 9; },
    [](View& v) { v.keys.codec.bits = 0; },
    [](View& v) { v.values.reset(), v.keys.codec = mlx1(1, 5), v.keys.codes = u8(2, 3, 5, 128); },
    [](View& v) { v.keys.codec.scaleFactor = 2; },
    [](View& v) { v = keysAlone(fakePlane(mlx1(0), 512)); },
    [](View& v) { v = keysAlone(fakePlane(mlx1(INFINITY), 512)); },
    [](View& v) { v = keysAlone(fakePlane(mlx1(2e6f), 512)); },
    [](View& v) { v = keysAlone(fakePlane(mlx1(16), 256)); },
    [](View& v) { v.keys.codes = u8(2, 3, 0, 80); },
    [](View& v) { v.values->codes = u8(2, 3, 6, 24); },
    [](View& v) { v.values->scales = f32(2, 3, 5); },
    [](View& v) { v.keys.scales = f16(2, 3, 5, 1); },
    [](View& v) { v = keysAlone(fakePlane(mlx1(), 512)), v.keys.scales = f32(2, 3, 5); },
    [](View& v) { v.values->channelScales = f32(3, 64); },
    [](View& v) { v = keysAlone(fakePlane(mlx1(), 512)), v.keys.means = f32(3, 512); },
    [](View& v) { v.keys.means = f32(3, 64); },
    [](View& v) { v.values->means = f16(3, 64); },
    [](View& v) { v.keys.channelScales = Tensor(); },
};

const Break<KVCacheQuantize> kBrokenQuantizations[] = {
    [](KVCacheQuantize& op) { op.into.values.reset(); },
    [](KVCacheQuantize& op) { op.keys = u16(2, 3, 128); },
    [](KVCacheQuantize& op) { op.values = f32(2, 3, 64); },
    [](KVCacheQuantize& op) { op.keys = f16(2, 3, 64); },
    [](KVCacheQuantize& op) { op.values = f16(2, 2, 64); },
    [](KVCacheQuantize& op) {
      useMlx1(op, 2, 4096), op.values = f16(2, 3, 64), op.into.values = fakePlane(mlx1(), 64);
    },
    [](KVCacheQuantize& op) { op.options.candidates = 9; },
    [](KVCacheQuantize& op) { op.options.keyScale = static_cast<KVScaleRule>(2); },
    [](KVCacheQuantize& op) { op.options.valueScale = static_cast<KVScaleRule>(2); },
    [](KVCacheQuantize& op) { op.options.nonFinite = static_cast<KVNonFinite>(2); },
    [](KVCacheQuantize& op) { op.counts = u32(3); },
    [](KVCacheQuantize& op) { op.counts = i32(2); },
    [](KVCacheQuantize& op) { op.probe = f32(3, 128); },
    [](KVCacheQuantize& op) { useMlx1(op, 2), op.probe = f32(3, 512); },
    [](KVCacheQuantize& op) { useMlx1(op), op.probe = f32(3, 256); },
};

const Break<KVCacheQuantize> kOverlaps[] = {
    [](KVCacheQuantize& op) { op.keys = aliased(op.into.keys.codes, f16(2, 3, 128)); },
    [](KVCacheQuantize& op) { op.into.values->scales = op.into.keys.scales; },
    [](KVCacheQuantize& op) {
      op.into.values->codes = u8(2, 300, 5, 24), op.into.keys.means = aliased(op.into.values->codes, f32(3));
    },
};

// Of each table of rules that it shares with cache writes, and of those of overlaps.
const Break<KVCacheQuantize> kOfOtherTables[] = {
    [](KVCacheQuantize& op) { op.keys = {}; },
    [](KVCacheQuantize& op) { op.values.reset(), op.into = keysAlone(fakePlane({.bits = 5}, 128, k2To31)); },
    [](KVCacheQuantize& op) { op.position = 4; },
    [](KVCacheQuantize& op) { op.into.values->scales = op.into.keys.scales; },
};

constexpr GoldenText kQuantizeErrors{
    "Ops/KVCacheQuantize/Rules.inc",
#include "Rules.inc"
};

}  // namespace

TEST(KVCacheQuantizeRules, EachHasItsError) {
  ErrorLines errors;
  const auto planOf = [](const View& view) {
    KVCacheQuantize op = soundQuantize();
    op.into = view;
    return plan(op);
  };
  expectRules<View>(errors, quantizedKVCacheRules(), KVCacheQuantize::name, soundView(), kBrokenViews, planOf);
  expectRules<KVCacheQuantize>(errors, kvCacheQuantizeRules(), KVCacheQuantize::name, soundQuantize(),
                               kBrokenQuantizations, [](const KVCacheQuantize& op) { return plan(op); });
  expectRules<KVCacheQuantize>(
      errors, kvCacheQuantizeOverlapRules(), KVCacheQuantize::name, soundQuantize(), kOverlaps,
      [](const KVCacheQuantize& op) { return checkRules(kvCacheQuantizeOverlapRules(), op, KVCacheQuantize::name); });
  for (const Break<KVCacheQuantize>& breakIn : kOfOtherTables) {
    KVCacheQuantize op = soundQuantize();
    breakIn(op);
    const auto planned = plan(op);
    if (planned) return fail(__FILE__, __LINE__, "a table is not checked");
    EXPECT_EQ(planned.error().op, KVCacheQuantize::name);
    errors.add(planned.error());
  }
  expectGolden(kQuantizeErrors, errors.lines());
}

}  // namespace mnk::test
