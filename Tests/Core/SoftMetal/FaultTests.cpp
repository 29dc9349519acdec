// Faults that a test can ask for. MetalFailure and MetalInFlight show that those of calls, codes and held work occur.
#include <atomic>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;
using softmetal::faults;

TEST(SoftMetalFaults, FailBeforeOrAfterTheWork) {
  const SoftMetalFixture fixture;
  for (const auto when : {softmetal::When::before, softmetal::When::after}) {
    faults().failCommandBuffer(1, MTL::CommandBufferErrorTimeout, when);
    for (int i = 0; i < 3; ++i) {
      const auto copy = fixture.copy();
      copy.numbersFrom()[0] = 5;
      copy.dispatch();
      copy.finish();
      EXPECT_EQ(copy.commands->status() == MTL::CommandBufferStatusError, i == 1);
      EXPECT_EQ(copy.numbersTo()[0] == 5, i != 1 || when == softmetal::When::after);
    }
  }
  const auto function = fixture.function("copy16");
  faults().loseDevice();
  NS::Error* error = nullptr;
  EXPECT(fixture.device()->newCommandQueue() == nullptr);
  EXPECT(fixture.device()->newComputePipelineState(function.get(), &error) == nullptr);
  EXPECT(fixture.library()->newFunction(text("copy16")) == nullptr);
  EXPECT(MTL::CreateSystemDefaultDevice() == nullptr);
}

TEST(SoftMetalFaults, DelayHandlersAndEndWithAReset) {
  const SoftMetalFixture fixture;
  std::atomic<int> calls = 0;
  faults().delayHandlers(2);
  for (const int expected : {0, 0, 1, 2}) {
    MTL::CommandBuffer* const commands = fixture.commandBuffer();
    commands->addCompletedHandler([&](MTL::CommandBuffer*) { calls += 1; });
    commands->commit();
    softmetal::waitUntilIdle();
    EXPECT_EQ(calls.load(), expected);
  }
  faults().failAt(softmetal::Call::buffer);
  faults().failCommandBuffer(0, MTL::CommandBufferErrorTimeout);
  faults().loseDevice();
  softmetal::machine().devices.clear();
  fixture.device()->newHeap(nullptr);
  softmetal::reset();
  EXPECT_EQ(calls.load(), 4);
  const auto copy = fixture.copy();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusCompleted);
  EXPECT(NS::TransferPtr(MTL::CreateSystemDefaultDevice()).get() != nullptr);
}
