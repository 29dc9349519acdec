// Breaks each rule of a cache's descriptor.
#include "AttentionCacheFixture.hpp"
#include "Cache/AttentionCacheRules.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/Common/BrokenRule.hpp"

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

}  // namespace

TEST(AttentionCacheRules, EachHasItsError) {
  const auto device = FakeDevice::make();
  ErrorLines errors;
  expectRules<Op>(errors, attentionCacheRules(), "AttentionCache", kDescriptor, kBrokenDescriptors,
                  [&](const Op& descriptor) { return AttentionCache::make(device, descriptor); });
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
  expectGolden(kRuleErrors, errors.lines());
}

}  // namespace mnk::test
