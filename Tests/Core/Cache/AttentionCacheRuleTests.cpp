// Breaks each rule of a cache's descriptor.
#include "AttentionCacheFixture.hpp"
#include "Cache/AttentionCacheRules.hpp"
#include "Harness/FakeDevice.hpp"
#include "Ops/Common/BrokenRule.hpp"

namespace mnk::test {

namespace {

const BrokenRule<AttentionCacheDescriptor> kBroken[] = {
    {"the cache would hold nothing", "kvHeads 0, headDim 4, capacity 4, sequences 3", "at least 1 of each",
     "Give every extent a size.", [](AttentionCacheDescriptor& d) { d.kvHeads = 0; }},
    {"the cache would hold nothing", "kvHeads 2, headDim 0, capacity 4, sequences 3", "at least 1 of each",
     "Give every extent a size.", [](AttentionCacheDescriptor& d) { d.headDim = 0; }},
    {"the cache would hold nothing", "kvHeads 2, headDim 4, capacity 0, sequences 3", "at least 1 of each",
     "Give every extent a size.", [](AttentionCacheDescriptor& d) { d.capacity = 0; }},
    {"the cache would hold nothing", "kvHeads 2, headDim 4, capacity 4, sequences 0", "at least 1 of each",
     "Give every extent a size.", [](AttentionCacheDescriptor& d) { d.sequences = 0; }},
    {"an extent is too large for the kernels", "2147483648", "less than 2^31 on every axis", "Split the cache.",
     [](AttentionCacheDescriptor& d) { d.capacity = 1u << 31; }},
    {"an extent is too large for the kernels", "4294967295", "less than 2^31 on every axis", "Split the cache.",
     [](AttentionCacheDescriptor& d) { d.valueHeadDim = UINT32_MAX; }},
    {"the cache cannot store this dtype", "u8", "f32, f16 or bf16", "Choose a floating-point dtype.",
     [](AttentionCacheDescriptor& d) { d.dtype = DType::u8; }},
    {"the cache cannot store this dtype", "u8", "f32, f16 or bf16", "Choose a floating-point dtype.",
     [](AttentionCacheDescriptor& d) {
       d.dtype = DType::u8;
       d.quantized = KVQuantizedStorage{.planes = KVQuantizedPlanes::values};
     }},
    {"the cache pins too many positions", "4 pinned in a ring of 4",
     "fewer than the capacity of a ring, and none in a linear cache",
     "Pin fewer positions, or let a larger cache overwrite the oldest.",
     [](AttentionCacheDescriptor& d) { d.pinned = 4; }},
    {"the cache pins too many positions", "1 pinned in a linear cache of 4",
     "fewer than the capacity of a ring, and none in a linear cache",
     "Pin fewer positions, or let a larger cache overwrite the oldest.",
     [](AttentionCacheDescriptor& d) { d.pinned = 1, d.whenFull = KVWrap::linear; }},
    {"a sliding window sees nothing", "a window of 0", "at least 1 position, the row's own",
     "Pass the model's window, or leave the sliding window out.",
     [](AttentionCacheDescriptor& d) { d.slidingWindow.emplace(); }},
    {"the capacity is too small for the sliding window", "4",
     "at least 5: 1 pinned, a window of 2, and 2 for a step of 3 rows or a draft of 1",
     "Leave the capacity out, and the cache sizes itself.",
     [](AttentionCacheDescriptor& d) {
       d.pinned = 1;
       d.slidingWindow = {.window = 2, .maxRows = 3, .maxDraft = 1};
     }},
    {"there is no attention kernel for these head dims", "4 of keys and 12 of values",
     "multiples of 8 up to 256, 512, or 576 with 512",
     "Choose such head dims, or make the cache for storage only if nothing attends to it.",
     [](AttentionCacheDescriptor& d) { d.valueHeadDim = 12, d.isStorageOnly = false; }},
    {"there is no attention kernel for these head dims", "4 of keys and 512 of values",
     "64 of keys beside a latent part of 512",
     "Choose such head dims, or make the cache for storage only if nothing attends to it.",
     [](AttentionCacheDescriptor& d) { d.latentDim = d.valueHeadDim = 512, d.isStorageOnly = false; }},
    {"values are not the latent part of keys", "valueHeadDim 64, latentDim 512", "the same of both",
     "Leave valueHeadDim out.", [](AttentionCacheDescriptor& d) { d.latentDim = 512, d.valueHeadDim = 64; }},
};

}  // namespace

TEST(AttentionCacheRules, EveryRuleHasAFailingCase) {
  expectEveryRuleIsBroken<AttentionCacheDescriptor>(attentionCacheRules(), kBroken);
}

TEST(AttentionCacheRules, EachErrorHasAllFourParts) {
  const auto device = FakeDevice::make();
  for (const auto& broken : kBroken) {
    AttentionCacheDescriptor descriptor = kDescriptor;
    broken.breakIn(descriptor);
    expectBroken<AttentionCacheDescriptor>(attentionCacheRules(), descriptor, broken, "AttentionCache");
    EXPECT_ERROR(AttentionCache::make(device, descriptor), {.op = "AttentionCache", .what = broken.what});
  }
  EXPECT_EQ(device->tried(FakeDevice::Call::makeBuffer), 0u);
}

}  // namespace mnk::test
