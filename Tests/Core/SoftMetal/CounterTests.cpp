// Timestamps and fences: each rule is broken once. MetalOpTimes has what they measure.
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;
using softmetal::Sampling;

TEST(SoftMetalCounters, HaveRules) {
  constexpr const char* kNotes[] = {", none", ", passes", ", dispatches"};
  for (const auto at : {Sampling::none, Sampling::passes, Sampling::dispatches}) {
    const SoftMetalFixture fixture({.sampling = at}, kNotes[static_cast<size_t>(at)]);
    const auto supports = [&](auto point) { return fixture.device()->supportsCounterSampling(point); };
    EXPECT_EQ(supports(MTL::CounterSamplingPointAtStageBoundary), at != Sampling::none);
    EXPECT_EQ(supports(MTL::CounterSamplingPointAtDispatchBoundary), at == Sampling::dispatches);
    EXPECT_EQ(fixture.device()->counterSets()->count(), at == Sampling::none ? 0u : 1u);
    if (at == Sampling::none) continue;
    const auto samples = [&](size_t count) {
      const auto descriptor = NS::TransferPtr(MTL::CounterSampleBufferDescriptor::alloc()->init());
      descriptor->setCounterSet(fixture.device()->counterSets()->object<MTL::CounterSet>(0));
      descriptor->setStorageMode(MTL::StorageModeShared);
      descriptor->setSampleCount(count);
      NS::Error* error = nullptr;
      return NS::TransferPtr(fixture.device()->newCounterSampleBuffer(descriptor.get(), &error));
    };
    EXPECT(!samples(0) && samples(4096) && !samples(4097));
    const auto taken = samples(2);
    const auto fence = NS::TransferPtr(fixture.device()->newFence());
    const auto copy = fixture.copy();
    copy->sampleCountersInBuffer(taken.get(), 2, true);
    copy->waitForFence(fence.get());
    copy.finish();
    EXPECT_EQ(taken->resolveCounterRange(NS::Range(0, 2))->length(), 16u);
    EXPECT(!taken->resolveCounterRange(NS::Range(1, 2)));
    MTL::Timestamp processor[2], gpu[2];
    for (size_t i = 0; i < 2; ++i) fixture.device()->sampleTimestamps(&processor[i], &gpu[i]);
    EXPECT_EQ(processor[1] - processor[0], (gpu[1] - gpu[0]) * 40);
  }
}
