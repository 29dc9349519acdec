// Every rule of caches that FlashDecode attends to, broken on purpose.
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/FlashDecode/FlashDecode.hpp"

namespace mnk::test {

namespace {

using Op = FlashDecode;
using View = KVCacheView;

// Six heads of one token over a cache of four sequences, two heads and five slots.
Op soundOp() {
  Op op{.queries = f16(6, 64), .cache = View{.keys = f16(4, 2, 5, 64), .values = f16(4, 2, 5, 64)}};
  op.sequences = {{3, 4}};
  op.results.output = f16(6, 64);
  return op;
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

constexpr GoldenText kGolden{
    "Ops/FlashDecode/CacheRules.inc",
#include "CacheRules.inc"
};

}  // namespace

TEST(FlashDecodeCacheRules, EachHasItsError) {
  const View valid = std::get<View>(soundOp().cache);
  ErrorLines errors;
  expectRules<View>(errors, attendedCacheRules(), Op::name, valid, kBrokenViews, [](const View& view) {
    Op op = soundOp();
    op.cache = view;
    return plan(op);
  });
  expectGolden(kGolden, errors.lines());
}

TEST(FlashDecodeCacheRules, AQuantizedCacheFollowsItsOwnRules) {
  const auto plane = [] {
    return QuantizedKVPlane{.codec = {.bits = 4}, .codes = u8(4, 2, 5, 32), .scales = f16(4, 2, 5)};
  };
  Op op = soundOp();
  op.cache = QuantizedKVCacheView{.keys = plane(), .values = plane()};
  EXPECT(bool(plan(op)));
  auto& view = std::get<QuantizedKVCacheView>(op.cache);
  view.latentDim = 512;
  EXPECT_ERROR(plan(op), {.op = Op::name,
                          .what = "the latent part does not match the cache",
                          .got = "a latent part of 512, values of 64",
                          .expected = "values of that length",
                          .fix = "Pass the length of the part of a key that is its value, too."});
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
