// Timestamps and fences: each rule is broken once.
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

softmetal::DeviceDescription sampling(softmetal::Sampling at) {
  return {.sampling = at};
}

NS::SharedPtr<MTL::CounterSampleBuffer> samples(const SoftMetalFixture& fixture, size_t count) {
  const auto descriptor = NS::TransferPtr(MTL::CounterSampleBufferDescriptor::alloc()->init());
  descriptor->setCounterSet(fixture.device()->counterSets()->object<MTL::CounterSet>(0));
  descriptor->setStorageMode(MTL::StorageModeShared);
  descriptor->setSampleCount(count);
  NS::Error* error = nullptr;
  return NS::TransferPtr(fixture.device()->newCounterSampleBuffer(descriptor.get(), &error));
}

}  // namespace

TEST(SoftMetalCounters, AreSampledWhereTheGPUCan) {
  for (const auto at : {softmetal::Sampling::none, softmetal::Sampling::passes, softmetal::Sampling::dispatches}) {
    const SoftMetalFixture fixture(sampling(at));
    MTL::Device* const device = fixture.device();
    EXPECT_EQ(device->counterSets()->count(), at == softmetal::Sampling::none ? 0u : 1u);
    EXPECT_EQ(device->supportsCounterSampling(MTL::CounterSamplingPointAtStageBoundary),
              at != softmetal::Sampling::none);
    EXPECT_EQ(device->supportsCounterSampling(MTL::CounterSamplingPointAtDispatchBoundary),
              at == softmetal::Sampling::dispatches);
  }
}

TEST(SoftMetalCounters, ADispatchTakesTheSameTimeAlways) {
  const SoftMetalFixture fixture(sampling(softmetal::Sampling::dispatches));
  MTL::Timestamp processor[2], gpu[2];
  fixture.device()->sampleTimestamps(&processor[0], &gpu[0]);
  const auto taken = samples(fixture, 2);
  const auto copy = fixture.copy();
  copy.encoder->sampleCountersInBuffer(taken.get(), 0, true);
  copy.dispatch();
  copy.dispatch();
  copy.encoder->sampleCountersInBuffer(taken.get(), 1, true);
  copy.finish();
  fixture.device()->sampleTimestamps(&processor[1], &gpu[1]);
  EXPECT_EQ(processor[1] - processor[0], (gpu[1] - gpu[0]) * 40);
  EXPECT_EQ(taken->resolveCounterRange(NS::Range(0, 2))->length(), 16u);
  EXPECT(!taken->resolveCounterRange(NS::Range(1, 2)));
  EXPECT_VIOLATIONS("2 samples from 1 on were resolved of 2");
}

TEST(SoftMetalCounters, TellOfSamplesWhereTheGPUHasNone) {
  const SoftMetalFixture fixture;
  const auto taken = samples(fixture, 2);
  const auto copy = fixture.copy();
  copy.encoder->sampleCountersInBuffer(taken.get(), 0, true);
  copy.finish();
  EXPECT_VIOLATIONS("sampleCountersInBuffer:atSampleIndex:withBarrier: is not supported on this GPU");
}

TEST(SoftMetalCounters, TellOfSamplesThatAreNotThere) {
  const SoftMetalFixture fixture(sampling(softmetal::Sampling::dispatches));
  const auto taken = samples(fixture, 2);
  const auto copy = fixture.copy();
  copy.encoder->sampleCountersInBuffer(taken.get(), 2, true);
  copy.finish();
  EXPECT_VIOLATIONS("sample 2 was asked for, where there are 2");
}

TEST(SoftMetalCounters, SampleBuffersHaveALimit) {
  const SoftMetalFixture fixture;
  EXPECT(!samples(fixture, 0));
  EXPECT(samples(fixture, 4096));
  EXPECT(!samples(fixture, 4097));
}

TEST(SoftMetalCounters, TellOfAFenceThatNobodyUpdates) {
  const SoftMetalFixture fixture;
  const auto fence = NS::TransferPtr(fixture.device()->newFence());
  const auto copy = fixture.copy();
  copy.encoder->waitForFence(fence.get());
  copy.finish();
  EXPECT_VIOLATIONS("waitForFence: of a fence that no encoder of the command buffer has updated");
}
