// Breaks each rule of a cache's descriptor and of its quantized storage.
#include <cmath>

#include "Cache/AttentionCacheRules.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

namespace {

using Op = AttentionCacheDescriptor;

const Break<Op> kBrokenDescriptors[] = {
    [](Op& d) { d.kvHeads = 0; },
    [](Op& d) { d.headDim = 0; },
    [](Op& d) { d.capacity = 0; },
    [](Op& d) { d.sequences = 0; },
    [](Op& d) { d.capacity = 1u << 31; },
    [](Op& d) { d.valueHeadDim = UINT32_MAX; },
    [](Op& d) { d.dtype = DType::u8; },
    [](Op& d) { d.dtype = DType::u8, d.quantized.emplace().planes = KVQuantizedPlanes::values; },
    [](Op& d) { d.whenFull = static_cast<KVWrap>(3); },
    [](Op& d) { d.pinned = 4; },
    [](Op& d) { d.pinned = 1, d.whenFull = KVWrap::linear; },
    [](Op& d) { d.slidingWindow.emplace(); },
    [](Op& d) { d.pinned = 1, d.slidingWindow = SlidingWindow{.window = 2, .maxRows = 3, .maxDraft = 1}; },
    [](Op& d) { d.valueHeadDim = 12, d.isStorageOnly = false; },
    [](Op& d) { d.latentDim = d.valueHeadDim = 512, d.isStorageOnly = false; },
    [](Op& d) { d.latentDim = 512, d.valueHeadDim = 64; },
};

constexpr GoldenText kRuleErrors{
    "Cache/Rules.inc",
#include "Rules.inc"
};

void useMlx1(Op& d, uint32_t bits) {
  d.quantized->codec = KVCodec::Name::mlx1;
  d.quantized->keyBits = d.quantized->valueBits = bits;
}
void useDims(Op& d, uint32_t headDim) {
  d.headDim = d.valueHeadDim = headDim;
}
const Break<Op> kBrokenStorages[] = {
    [](Op& d) { d.quantized->planes = static_cast<KVQuantizedPlanes>(3); },
    [](Op& d) { d.headDim = 48; },
    [](Op& d) { d.quantized->valueBits = 9; },
    [](Op& d) { d.quantized->codec = KVCodec::Name::mlx1; },
    [](Op& d) { useMlx1(d, 4), useDims(d, 256), d.quantized->codec = KVCodec::Name::mlx1Unrotated; },
    [](Op& d) { useMlx1(d, 8), d.quantized->codec = KVCodec::Name::mlx1Unrotated; },
    [](Op& d) { useMlx1(d, 8), useDims(d, 256), d.quantized->codec = KVCodec::Name::mlx1Affine4; },
    [](Op& d) { useMlx1(d, 4), useDims(d, 128), d.quantized->codec = KVCodec::Name::mlx1Affine4; },
    [](Op& d) { useMlx1(d, 4), useDims(d, 256), d.quantized->codec = static_cast<KVCodec::Name>(4); },
    [](Op& d) { useMlx1(d, 4), d.headDim = 4096; },
    [](Op& d) { d.quantized->scaleFactor = 2; },
    [](Op& d) { useMlx1(d, 8), useDims(d, 512), d.quantized->scaleFactor = INFINITY; },
    [](Op& d) {
      useMlx1(d, 4), useDims(d, 512), d.quantized->codec = KVCodec::Name::mlx1Affine4, d.quantized->scaleFactor = 2;
    },
    [](Op& d) { d.quantized->options.candidates = 2; },
    [](Op& d) { d.quantized->options.valueScale = static_cast<KVScaleRule>(2); },
    [](Op& d) { d.quantized->options.nonFinite = static_cast<KVNonFinite>(2); },
    [](Op& d) { useMlx1(d, 4), d.quantized->valueMeans = f32(2, 64); },
    [](Op& d) { d = mixed(d, KVQuantizedPlanes::values), d.quantized->keyChannelScales = f32(2, 32); },
    [](Op& d) { d = mixed(d, KVQuantizedPlanes::keys), d.quantized->valueMeans = f32(2, 64); },
    [](Op& d) { d = mixed(d, KVQuantizedPlanes::values), d.headDim = 48; },
    [](Op& d) { d.quantized->keyMeans = f32(2, 64); },
    [](Op& d) { d.quantized->valueMeans = f16(2, 64); },
    [](Op& d) { d.quantized->keyChannelScales = Tensor(); },
    [](Op& d) { d.quantized->keyChannelScales = constants(FakeDevice::make(), 0, 2, 32); },
};

constexpr GoldenText kStorageErrors{
    "Cache/QuantizedRules.inc",
#include "QuantizedRules.inc"
};

}  // namespace

TEST(AttentionCacheRules, EachHasItsError) {
  const auto device = FakeDevice::make();
  ErrorLines errors;
  expectRules<Op>(errors, attentionCacheRules(), "AttentionCache", kDescriptor, kBrokenDescriptors,
                  [&](const Op& descriptor) { return AttentionCache::make(device, descriptor); });
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  expectGolden(kRuleErrors, errors.lines());
}

TEST(AttentionCacheQuantizedRules, EachHasItsError) {
  const auto device = FakeDevice::make();
  ErrorLines errors;
  expectRules<Op>(errors, quantizedStorageRules(), "AttentionCache", turboDescriptor(), kBrokenStorages,
                  [&](const Op& descriptor) { return AttentionCache::make(device, descriptor); });
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  expectGolden(kStorageErrors, errors.lines());
}

TEST(AttentionCacheQuantizedRules, ChecksMeansAndChannelScales) {
  const auto device = FakeDevice::make();
  for (const float wrong : {INFINITY, -INFINITY, std::nanf(""), 0.0f, -0.0f, 1e-40f}) {
    std::vector<float> elements(2 * 32, 1);
    elements[37] = wrong;
    const Tensor tensor = numbers(device, elements, REQUIRE(Shape::make({2, 32})));
    AttentionCacheDescriptor scaled = turboDescriptor();
    scaled.quantized->keyChannelScales = tensor;
    EXPECT_ERROR(AttentionCache::make(device, scaled),
                 {.what = "cannot be used", .got = "of head 1, channel 5, in keyChannelScales"});
    AttentionCacheDescriptor shifted = turboDescriptor();
    shifted.quantized->keyMeans = tensor;
    EXPECT_EQ(bool(AttentionCache::make(device, shifted)), std::isfinite(wrong));
  }
}

}  // namespace mnk::test
