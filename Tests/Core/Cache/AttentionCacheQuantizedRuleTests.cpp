// Rules that quantized storage adds to a cache's descriptor.
#include <cmath>

#include "Cache/AttentionCacheRules.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

namespace {

using Op = AttentionCacheDescriptor;

void useMlx1(Op& d, uint32_t bits) {
  d.quantized->codec = KVCodec::Name::mlx1;
  d.quantized->keyBits = d.quantized->valueBits = bits;
}
void useDims(Op& d, uint32_t headDim) {
  d.headDim = d.valueHeadDim = headDim;
}
void useMixed(Op& d, KVQuantizedPlanes planes) {
  d = mixed(d, planes);
}

const Break<Op> kBroken[] = {
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
    [](Op& d) { useMixed(d, KVQuantizedPlanes::values), d.quantized->keyChannelScales = f32(2, 32); },
    [](Op& d) { useMixed(d, KVQuantizedPlanes::keys), d.quantized->valueMeans = f32(2, 64); },
    [](Op& d) { useMixed(d, KVQuantizedPlanes::values), d.headDim = 48; },
    [](Op& d) { d.quantized->keyMeans = f32(2, 64); },
    [](Op& d) { d.quantized->valueMeans = f16(2, 64); },
    [](Op& d) { d.quantized->keyChannelScales = Tensor(); },
    [](Op& d) { d.quantized->keyChannelScales = constants(FakeDevice::make(), 0, 2, 32); },
};

constexpr GoldenText kGolden{
    "Cache/QuantizedRules.inc",
#include "QuantizedRules.inc"
};

}  // namespace

TEST(AttentionCacheQuantizedRules, EachHasItsError) {
  const auto device = FakeDevice::make();
  ErrorLines errors;
  expectRules<Op>(errors, quantizedStorageRules(), "AttentionCache", turboDescriptor(), kBroken,
                  [&](const Op& descriptor) { return AttentionCache::make(device, descriptor); });
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  expectGolden(kGolden, errors.lines());
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
