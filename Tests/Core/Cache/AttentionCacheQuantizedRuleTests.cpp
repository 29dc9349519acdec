// Rules that quantized storage adds to a cache's descriptor.
#include <cmath>
#include <limits>

#include "Cache/QuantizedStorageRules.hpp"
#include "Harness/FakeDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "QuantizedCacheFixture.hpp"

namespace mnk::test {

namespace {

Tensor planChannels(uint64_t heads, uint64_t headDim, DType dtype = DType::f32) {
  return planTensor(dtype, {heads, headDim});
}

const BrokenRule<AttentionCacheDescriptor> kBroken[] = {
    {"the codec cannot code such vectors", "turbo of 5 bits, head dim 48",
     "2 to 8 bits, and a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512",
     "Choose other bits, the other codec, or a dense cache.", [](AttentionCacheDescriptor& d) { d.headDim = 48; }},
    {"the codec cannot code such vectors", "turbo of 9 bits, head dim 64",
     "2 to 8 bits, and a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512",
     "Choose other bits, the other codec, or a dense cache.",
     [](AttentionCacheDescriptor& d) { d.quantized->valueBits = 9; }},
    {"the codec cannot code such vectors", "mlx1 of 5 bits, head dim 32",
     "4 bits and a power of two from 4 to 4096, or 5, 6 or 8 bits and 256 or 512",
     "Choose other bits, the other codec, or a dense cache.",
     [](AttentionCacheDescriptor& d) { d.quantized->codec = KVCodecName::mlx1; }},
    {"head dims of keys and values are too different", "4096 and 64", "at most 32 times the other",
     "Keep keys and values in caches of their own memory, each with an op of its own.",
     [](AttentionCacheDescriptor& d) {
       d.quantized->codec = KVCodecName::mlx1;
       d.quantized->keyBits = d.quantized->valueBits = 4;
       d.headDim = 4096;
     }},
    {"the scale factor cannot be used", "2 for turbo at head dims 32 and 64",
     "1, or for mlx1 at head dims of 512 a number from 1e-6 to 1e6", "Leave the scale factor at 1.",
     [](AttentionCacheDescriptor& d) { d.quantized->scaleFactor = 2; }},
    {"the scale factor cannot be used", "inf for mlx1 at head dims 512 and 512",
     "1, or for mlx1 at head dims of 512 a number from 1e-6 to 1e6", "Leave the scale factor at 1.",
     [](AttentionCacheDescriptor& d) {
       d.quantized->codec = KVCodecName::mlx1;
       d.quantized->keyBits = d.quantized->valueBits = 8;
       d.headDim = d.valueHeadDim = 512;
       d.quantized->scaleFactor = std::numeric_limits<float>::infinity();
     }},
    {"there is no search with so many candidates", "2", "1, 5 or 17", "Use 5, or 17 for a little less error.",
     [](AttentionCacheDescriptor& d) { d.quantized->options.candidates = 2; }},
    {"the codec has no means or channel scales", "mlx1", "turbo", "Use turbo, or leave means and channel scales out.",
     [](AttentionCacheDescriptor& d) {
       d.quantized->codec = KVCodecName::mlx1;
       d.quantized->keyBits = d.quantized->valueBits = 4;
       d.quantized->valueMeans = planChannels(2, 64);
     }},
    {"means or channel scales are for vectors that are not coded", "keyChannelScales",
     "those of vectors that are coded", "Leave them out, or let the storage code keys and values both.",
     [](AttentionCacheDescriptor& d) {
       d = mixed(d, KVQuantizedPlanes::values);
       d.quantized->keyChannelScales = planChannels(2, 32);
     }},
    {"means or channel scales are for vectors that are not coded", "valueMeans", "those of vectors that are coded",
     "Leave them out, or let the storage code keys and values both.",
     [](AttentionCacheDescriptor& d) {
       d = mixed(d, KVQuantizedPlanes::keys);
       d.quantized->valueMeans = planChannels(2, 64);
     }},
    {"the codec cannot code such vectors", "turbo of 3 bits, head dim 48",
     "2 to 8 bits, and a head dim of 32, 64, 80, 96, 112, 128, 192, 256 or 512",
     "Choose other bits, the other codec, or a dense cache.",
     [](AttentionCacheDescriptor& d) {
       d = mixed(d, KVQuantizedPlanes::values);
       d.headDim = 48;
     }},
    {"means or channel scales do not match the cache", "keyMeans as f32 [2, 64]",
     "f32 [2, 32] for keys, f32 [2, 64] for values", "Pass one f32 for every channel of every head.",
     [](AttentionCacheDescriptor& d) { d.quantized->keyMeans = planChannels(2, 64); }},
    {"means or channel scales do not match the cache", "valueMeans as f16 [2, 64]",
     "f32 [2, 32] for keys, f32 [2, 64] for values", "Pass one f32 for every channel of every head.",
     [](AttentionCacheDescriptor& d) { d.quantized->valueMeans = planChannels(2, 64, DType::f16); }},
    {"means or channel scales do not match the cache", "keyChannelScales as a tensor without memory",
     "f32 [2, 32] for keys, f32 [2, 64] for values", "Pass one f32 for every channel of every head.",
     [](AttentionCacheDescriptor& d) { d.quantized->keyChannelScales = Tensor(); }},
    {"means or channel scales hold a number that cannot be used", "0 of head 0, channel 0, in keyChannelScales",
     "finite means, and finite channel scales other than 0",
     "Measure them anew from finite keys and values; use 1 as the scale of a channel that is always 0.",
     [](AttentionCacheDescriptor& d) { d.quantized->keyChannelScales = constants(FakeDevice::make(), 0, 2, 32); }},
};

}  // namespace

TEST(AttentionCacheQuantizedRules, EveryRuleHasAFailingCase) {
  expectEveryRuleIsBroken<AttentionCacheDescriptor>(quantizedStorageRules(), kBroken);
}

TEST(AttentionCacheQuantizedRules, EachErrorHasAllFourParts) {
  const auto device = FakeDevice::make();
  for (const auto& broken : kBroken) {
    AttentionCacheDescriptor descriptor = turboDescriptor();
    broken.breakIn(descriptor);
    expectBroken<AttentionCacheDescriptor>(quantizedStorageRules(), descriptor, broken, "AttentionCache");
    EXPECT_ERROR(AttentionCache::make(device, descriptor), {.op = "AttentionCache", .what = broken.what});
  }
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
}

TEST(AttentionCacheQuantizedRules, ChecksMeansAndChannelScales) {
  const auto device = FakeDevice::make();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {infinity, -infinity, std::nanf(""), 0.0f, -0.0f, 1e-40f}) {
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
