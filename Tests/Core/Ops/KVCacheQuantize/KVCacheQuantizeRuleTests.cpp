// Every rule of quantized caches and of KVCacheQuantize, broken on purpose.
#include <limits>

#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/Common/QuantizedKVCacheRules.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeRules.hpp"

namespace mnk::test {

namespace {

using Op = KVCacheQuantize;
using View = QuantizedKVCacheView;

QuantizedKVPlane planeOf(const KVCodec& codec, uint64_t headDim) {
  const KVCodecSizes row = REQUIRE(sizes(codec, headDim));
  QuantizedKVPlane plane{.codec = codec};
  plane.codes = planTensor(DType::u8, {2, 3, 5, row.codeBytes});
  plane.scales =
      row.scales == 1 ? planTensor(codec.scaleType(), {2, 3, 5}) : planTensor(codec.scaleType(), {2, 3, 5, 2});
  return plane;
}

// Two sequences, three heads and five slots; keys of 128 in 5 bits, values of 64 in 3.
View soundView() {
  return {.keys = planeOf({.bits = 5}, 128), .values = planeOf({.bits = 3}, 64)};
}

Op soundOp() {
  Op op{.keys = planTensor(DType::f16, {2, 3, 128}), .values = planTensor(DType::f16, {2, 3, 64}), .into = soundView()};
  op.sequence = 1;
  op.position = 2;
  return op;
}

void useMlx1(Op& op, uint64_t tokens = 1) {
  op.keys = planTensor(DType::f16, {tokens, 3, 512});
  op.values.reset();
  op.into = {.keys = planeOf({.name = KVCodecName::mlx1}, 512)};
}

constexpr std::string_view kMakeFirst = "Make the cache's tensors before using it.";
constexpr std::string_view kHeadMajor = "[heads, capacity, codeBytes] or [sequences, heads, capacity, codeBytes]";
constexpr std::string_view kTurboLengths =
    "2 to 8 bits, and bits * headDim / 8 bytes for a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512";
constexpr std::string_view kMlx1Lengths =
    "4 bits and half a head dim of 4 to 4096, or 5, 6 or 8 bits and 256 or 512 bytes";
constexpr std::string_view kAskSizes = "Ask the codec for its sizes, and give the codes that last axis.";
constexpr std::string_view kFactors = "1, or for mlx1 at head dim 512 a number from 1e-6 to 1e6";
constexpr std::string_view kLeaveFactor = "Leave the scale factor at 1.";
constexpr std::string_view kScaleAxes =
    "Give scales the axes of the codes but for the last, and one of 2 where a vector has two.";
constexpr std::string_view kLeaveThemOut = "Leave them out, or make tensors of u8 for codes.";
constexpr std::string_view kTurboFactors = "means, and for keys channel scales, with turbo";

const BrokenRule<View> kBrokenViews[] = {
    {"the cache has no memory", "keys whose codes have none", "codes and scales with memory", kMakeFirst,
     [](View& v) { v.keys.codes = {}; }},
    {"the cache has no memory", "values whose scales have none", "codes and scales with memory", kMakeFirst,
     [](View& v) { v.values->scales = {}; }},
    {"the cache has the wrong rank", "codes of keys [5, 80], of values [2, 3, 5, 24]", kHeadMajor,
     "Reshape the codes; keys and values need the same rank.",
     [](View& v) {
       v.keys.codes = planTensor(DType::u8, {5, 80});
     }},
    {"the cache has the wrong rank", "codes of keys [2, 3, 5, 80], of values [3, 5, 24]", kHeadMajor,
     "Reshape the codes; keys and values need the same rank.",
     [](View& v) {
       v.values->codes = planTensor(DType::u8, {3, 5, 24});
     }},
    {"nothing in the cache is quantized", "f16 [2, 3, 5, 128]", "u8 codes of keys or of values",
     "Pass a KVCacheView for a dense cache.",
     [](View& v) {
       v.keys = {.codes = planTensor(DType::f16, {2, 3, 5, 128})};
       v.values = {.codes = planTensor(DType::f16, {2, 3, 5, 64})};
     }},
    {"nothing in the cache is quantized", "f32 [2, 3, 5, 128]", "u8 codes of keys or of values",
     "Pass a KVCacheView for a dense cache.",
     [](View& v) {
       v = {.keys = {.codes = planTensor(DType::f32, {2, 3, 5, 128})}};
     }},
    {"dense vectors have no scales, means or channel scales", "bf16 [2, 3, 5, 128] with scales", "elements alone",
     kLeaveThemOut,
     [](View& v) {
       v.keys.codes = planTensor(DType::bf16, {2, 3, 5, 128});
     }},
    {"dense vectors have no scales, means or channel scales", "f16 [2, 3, 5, 64] with means", "elements alone",
     kLeaveThemOut,
     [](View& v) {
       v.values = {.codes = planTensor(DType::f16, {2, 3, 5, 64}), .means = planTensor(DType::f32, {3, 64})};
     }},
    {"dense vectors have no scales, means or channel scales", "f32 [2, 3, 5, 128] with channel scales",
     "elements alone", kLeaveThemOut,
     [](View& v) {
       v.keys = {.codes = planTensor(DType::f32, {2, 3, 5, 128}), .channelScales = planTensor(DType::f32, {3, 128})};
     }},
    {"dense vectors have a head dim that the codec beside them does not have", "f16 [2, 3, 5, 120]",
     "a head dim of turbo of 3 bits", "Use a head dim that the codec can code, or a dense cache.",
     [](View& v) {
       v.keys = {.codes = planTensor(DType::f16, {2, 3, 5, 120})};
     }},
    {"dense vectors have a head dim that the codec beside them does not have", "f16 [2, 3, 5, 1024]",
     "a head dim of turbo of 5 bits", "Use a head dim that the codec can code, or a dense cache.",
     [](View& v) {
       v.values = {.codes = planTensor(DType::f16, {2, 3, 5, 1024})};
     }},
    {"codes are not bytes", "u16 [2, 3, 5, 40]", "u8, or for one of keys and values f32, f16 or bf16",
     "Make tensors of u8 for codes.",
     [](View& v) {
       v.keys.codes = planTensor(DType::u16, {2, 3, 5, 40});
     }},
    {"keys and values have different codecs", "turbo and mlx1", "one codec, with bits for each",
     "Use one codec for both, or two ops.", [](View& v) { v.values->codec = {.name = KVCodecName::mlx1}; }},
    {"the codec has no codes of this length", "turbo of 5 bits, 81 bytes of codes", kTurboLengths, kAskSizes,
     [](View& v) {
       v.keys.codes = planTensor(DType::u8, {2, 3, 5, 81});
     }},
    {"the codec has no codes of this length", "turbo of 9 bits, 24 bytes of codes", kTurboLengths, kAskSizes,
     [](View& v) { v.values->codec.bits = 9; }},
    {"the codec has no codes of this length", "turbo of 0 bits, 80 bytes of codes", kTurboLengths, kAskSizes,
     [](View& v) { v.keys.codec.bits = 0; }},
    {"the codec has no codes of this length", "mlx1 of 5 bits, 128 bytes of codes", kMlx1Lengths, kAskSizes,
     [](View& v) {
       v.values.reset();
       v.keys.codec = {.name = KVCodecName::mlx1, .bits = 5};
       v.keys.codes = planTensor(DType::u8, {2, 3, 5, 128});
     }},
    {"the scale factor cannot be used", "2 for turbo at head dim 128", kFactors, kLeaveFactor,
     [](View& v) { v.keys.codec.scaleFactor = 2; }},
    {"the scale factor cannot be used", "0 for mlx1 at head dim 512", kFactors, kLeaveFactor,
     [](View& v) { v = {.keys = planeOf({.name = KVCodecName::mlx1, .scaleFactor = 0}, 512)}; }},
    {"the scale factor cannot be used", "inf for mlx1 at head dim 512", kFactors, kLeaveFactor,
     [](View& v) {
       v = {.keys = planeOf({.name = KVCodecName::mlx1, .scaleFactor = std::numeric_limits<float>::infinity()}, 512)};
     }},
    {"the scale factor cannot be used", "2000000 for mlx1 at head dim 512", kFactors, kLeaveFactor,
     [](View& v) { v = {.keys = planeOf({.name = KVCodecName::mlx1, .scaleFactor = 2e6f}, 512)}; }},
    {"the scale factor cannot be used", "16 for mlx1 at head dim 256", kFactors, kLeaveFactor,
     [](View& v) { v = {.keys = planeOf({.name = KVCodecName::mlx1, .scaleFactor = 16}, 256)}; }},
    {"the cache has no capacity", "codes [2, 3, 0, 80]", "at least one slot",
     "Make a cache with a capacity of at least 1.",
     [](View& v) {
       v.keys.codes = planTensor(DType::u8, {2, 3, 0, 80});
     }},
    {"the value cache differs from the key cache", "[2, 3, 6, 24]", "[2, 3, 5, 80], but for the last axis",
     "Make both with the same sequences, heads and capacity.",
     [](View& v) {
       v.values->codes = planTensor(DType::u8, {2, 3, 6, 24});
     }},
    {"scales have the wrong dtype", "f32 [2, 3, 5]", "f16", "Make scales of f16 for turbo, and of f32 for mlx1.",
     [](View& v) {
       v.values->scales = planTensor(DType::f32, {2, 3, 5});
     }},
    {"scales do not match the codes", "[2, 3, 5, 1]", "[2, 3, 5]", kScaleAxes,
     [](View& v) {
       v.keys.scales = planTensor(DType::f16, {2, 3, 5, 1});
     }},
    {"scales do not match the codes", "[2, 3, 5]", "[2, 3, 5, 2]", kScaleAxes,
     [](View& v) {
       v = {.keys = planeOf({.name = KVCodecName::mlx1}, 512)};
       v.keys.scales = planTensor(DType::f32, {2, 3, 5});
     }},
    {"the codec has no means or channel scales", "channel scales of values", kTurboFactors,
     "Leave them out, or use turbo.",
     [](View& v) {
       v.values->channelScales = planTensor(DType::f32, {3, 64});
     }},
    {"the codec has no means or channel scales", "means or channel scales with mlx1", kTurboFactors,
     "Leave them out, or use turbo.",
     [](View& v) {
       v = {.keys = planeOf({.name = KVCodecName::mlx1}, 512)};
       v.keys.means = planTensor(DType::f32, {3, 512});
     }},
    {"means or channel scales do not match the cache", "f32 [3, 64]", "f32 [3, 128]", "Pass f32 [heads, headDim].",
     [](View& v) {
       v.keys.means = planTensor(DType::f32, {3, 64});
     }},
    {"means or channel scales do not match the cache", "f16 [3, 64]", "f32 [3, 64]", "Pass f32 [heads, headDim].",
     [](View& v) {
       v.values->means = planTensor(DType::f16, {3, 64});
     }},
    {"means or channel scales do not match the cache", "a tensor without memory", "f32 [3, 128]",
     "Pass f32 [heads, headDim].", [](View& v) { v.keys.channelScales = Tensor(); }},
};

const BrokenRule<Op> kBroken[] = {
    {"values are given but the cache has none", "values, and a cache of keys alone", "a cache with values",
     "Give the cache codes and scales for values, or write keys alone.", [](Op& op) { op.into.values.reset(); }},
    {"the source cannot be coded", "u16", "f32, f16 or bf16", "Convert the keys and values.",
     [](Op& op) {
       op.keys = planTensor(DType::u16, {2, 3, 128});
     }},
    {"values have another dtype than keys", "f32", "f16, as for keys",
     "Use one dtype for both, or write keys and values separately.",
     [](Op& op) {
       op.values = planTensor(DType::f32, {2, 3, 64});
     }},
    {"keys do not have the cache's heads and headDim", "3 heads of 64 in token-major [2, 3, 64]", "3 heads of 128",
     "Reshape the keys, or write to a cache made for them.",
     [](Op& op) {
       op.keys = planTensor(DType::f16, {2, 3, 64});
     }},
    {"values do not have the cache's heads and headDim", "2 heads of 64 in token-major [2, 2, 64]", "3 heads of 64",
     "Reshape the values, or write to a cache made for them.",
     [](Op& op) {
       op.values = planTensor(DType::f16, {2, 2, 64});
     }},
    {"head dims of keys and values are too different", "4096 and 64", "at most 32 times the other",
     "Use one op for keys and one for values.",
     [](Op& op) {
       op.keys = planTensor(DType::f16, {2, 3, 4096});
       op.into = {.keys = planeOf({.name = KVCodecName::mlx1}, 4096),
                  .values = planeOf({.name = KVCodecName::mlx1}, 64)};
     }},
    {"there is no search with so many candidates", "9", "1, 5 or 17", "Use 5, or 17 for a little less error.",
     [](Op& op) { op.options.candidates = 9; }},
    {"the counts do not fit", "u32 [3]", "u32 [2]", "Pass a tensor of two u32.",
     [](Op& op) { op.counts = planTensor(DType::u32, {3}); }},
    {"the counts do not fit", "i32 [2]", "u32 [2]", "Pass a tensor of two u32.",
     [](Op& op) { op.counts = planTensor(DType::i32, {2}); }},
    {"the probe is for one token of mlx1", "2 tokens of turbo", "one token, and mlx1", "Leave the probe out.",
     [](Op& op) {
       op.probe = planTensor(DType::f32, {3, 128});
     }},
    {"the probe is for one token of mlx1", "2 tokens of mlx1", "one token, and mlx1", "Leave the probe out.",
     [](Op& op) {
       useMlx1(op, 2);
       op.probe = planTensor(DType::f32, {3, 512});
     }},
    {"the probe does not fit", "f32 [3, 256]", "f32 [3, 512]", "Pass f32 [heads, headDim].",
     [](Op& op) {
       useMlx1(op);
       op.probe = planTensor(DType::f32, {3, 256});
     }},
};

const BrokenRule<Op> kOverlaps[] = {
    {"operands share memory", "keys overlapping codes of keys", "separate memory",
     "Keep what is written apart from what is read.",
     [](Op& op) {
       op.keys = REQUIRE(Tensor::over(op.into.keys.codes.buffer(), DType::f16, REQUIRE(Shape::make({2, 3, 128}))));
     }},
    {"operands share memory", "scales of keys overlapping scales of values", "separate memory",
     "Keep what is written apart from what is read.", [](Op& op) { op.into.values->scales = op.into.keys.scales; }},
    {"operands share memory", "means overlapping codes of values", "separate memory",
     "Keep what is written apart from what is read.",
     [](Op& op) {
       op.into.values->codes = planTensor(DType::u8, {2, 300, 5, 24});
       op.into.keys.means =
           REQUIRE(Tensor::over(op.into.values->codes.buffer(), DType::f32, REQUIRE(Shape::make({3, 128}))));
     }},
};

}  // namespace

TEST(KVCacheQuantizeRules, EachRuleOfACacheHasAnErrorThatSaysHowToMendIt) {
  for (const auto& broken : kBrokenViews) {
    View view = soundView();
    broken.breakIn(view);
    expectBroken(quantizedKVCacheRules(), view, broken, Op::name);
    Op op = soundOp();
    op.into = view;
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<View>(quantizedKVCacheRules(), kBrokenViews);
}

TEST(KVCacheQuantizeRules, EachRuleHasAnErrorThatSaysHowToMendIt) {
  EXPECT(bool(plan(soundOp())));
  for (const auto& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(kvCacheQuantizeRules(), op, broken, Op::name);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = broken.what, .got = broken.got});
  }
  expectEveryRuleIsBroken<Op>(kvCacheQuantizeRules(), kBroken);
}

TEST(KVCacheQuantizeRules, WhatIsWrittenSharesNoMemory) {
  for (const auto& broken : kOverlaps) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken(kvCacheQuantizeOverlapRules(), op, broken, Op::name);
  }
  expectEveryRuleIsBroken<Op>(kvCacheQuantizeOverlapRules(), kOverlaps);
  Op op = soundOp();
  op.into.values->scales = op.into.keys.scales;
  EXPECT_ERROR(plan(op), {.op = Op::name, .what = "operands share memory"});
}

TEST(KVCacheQuantizeRules, SourcesAndAddressesFollowTheRulesOfCacheWrites) {
  const auto expectRefused = [](std::string_view what, void (*breakIn)(Op&)) {
    Op op = soundOp();
    breakIn(op);
    EXPECT_ERROR(plan(op), {.op = Op::name, .what = what});
  };
  expectRefused("a source has no memory", [](Op& op) { op.keys = {}; });
  expectRefused("keys have the wrong rank", [](Op& op) { op.keys = planTensor(DType::f16, {1, 1, 2, 3, 128}); });
  expectRefused("values have the wrong rank", [](Op& op) { op.values = planTensor(DType::f16, {64}); });
  expectRefused("vectors lie outside of their tensor", [](Op& op) {
    op.keys = HeadsView(op.keys.tensor,
                        {.tokens = 2, .heads = 3, .headDim = 128, .offset = 1, .tokenStride = 384, .headStride = 128});
  });
  expectRefused("a head-major source is read as token-major", [](Op& op) {
    op.keys = planTensor(DType::f16, {3, 2, 128});
  });
  expectRefused("a token-major source is read as head-major", [](Op& op) { op.values->layout = KVLayout::headMajor; });
  expectRefused("values hold another number of tokens than keys", [](Op& op) {
    op.values = planTensor(DType::f16, {1, 3, 64});
  });
  expectRefused("an extent is too large for the kernel", [](Op& op) {
    op.into.values.reset();
    op.values.reset();
    op.into.keys.codes = planTensor(DType::u8, {2, 3, uint64_t{1} << 31, 80});
    op.into.keys.scales = planTensor(DType::f16, {2, 3, uint64_t{1} << 31});
  });
  expectRefused("the write reads past the end of the source", [](Op& op) { op.sourceOffset = 3; });
  expectRefused("the cache has no room for its pinned slots", [](Op& op) { op.into.pinned = 1; });
  expectRefused("the sequence is not in the cache", [](Op& op) { op.sequence = 2; });
  expectRefused("the position is too large to count", [](Op& op) { op.position = UINT64_MAX; });
  expectRefused("the write runs past the end of a linear cache", [](Op& op) { op.position = 4; });
  expectRefused("the rows do not match the tokens", [](Op& op) {
    op.rows = KVCacheWrite::Rows{std::vector<uint32_t>{0}, std::vector<uint32_t>{0}};
  });
}

}  // namespace mnk::test
