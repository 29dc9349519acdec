// Command buffers: what tests can ask them to do, and what is reported when they are misused. MetalSubmission,
// MetalFailure and MetalInFlight have what a device does with them.
#include <algorithm>
#include <stdexcept>

#include "Harness/EnvironmentVariable.hpp"
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;
using softmetal::faults;

TEST(SoftMetalCommandBuffer, ReportsAHandlerThatThrows) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer("thrower");
  commands->addCompletedHandler([](MTL::CommandBuffer*) { throw std::runtime_error("no"); });
  commands->commit();
}

TEST(SoftMetalCommandBuffer, RunsInTheOrderOfTheQueue) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const buffers[] = {fixture.commandBuffer(), fixture.commandBuffer(), fixture.commandBuffer()};
  buffers[1]->enqueue();
  buffers[0]->commit();
  EXPECT_EQ(buffers[0]->status(), MTL::CommandBufferStatusCommitted);  // behind one that is not committed
  buffers[2]->commit();
  buffers[1]->commit();
  buffers[2]->waitUntilCompleted();
  EXPECT(buffers[1]->GPUStartTime() < buffers[0]->GPUStartTime());
  EXPECT(buffers[0]->GPUStartTime() < buffers[2]->GPUStartTime());
  const Pool pool;
  fixture.commandBuffer("forgotten")->enqueue();
  fixture.commandBuffer()->commit();
}

TEST(SoftMetalCommandBuffer, ReportsWhatIsDeallocatedTooEarly) {
  const SoftMetalFixture fixture;
  for (const bool isRetained : {true, false}) {
    for (const bool isEarly : {true, false}) {
      auto copy = isRetained ? fixture.copy() : fixture.unretainedCopy();
      copy.numbersFrom()[15] = 99;
      copy.dispatch();
      copy->endEncoding();
      faults().holdWork();
      copy.commands->commit();
      if (isEarly) copy.from.reset();
      faults().releaseWork();
      copy.commands->waitUntilCompleted();
      if (isRetained || !isEarly) EXPECT_EQ(copy.numbersTo()[15], 99u);
    }
  }
  auto copy = fixture.unretainedCopy();
  copy->endEncoding();
  copy.to.reset();
  copy.commands->commit();
  copy.commands->waitUntilCompleted();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusError);
}

TEST(SoftMetalCommandBuffer, DoesNotDispatchWithDeallocatedObjects) {
  const SoftMetalFixture fixture;
  auto copy = fixture.unretainedCopy();
  copy.from.reset();
  copy.to.reset();
  copy.dispatch();
  copy.pipeline.reset();
  copy.dispatch();
  copy->endEncoding();
}

TEST(SoftMetalCommandBuffer, ReportsCallsInTheWrongState) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const once = fixture.commandBuffer("once");
  once->waitUntilCompleted();
  once->commit();
  once->commit();
  EXPECT(once->computeCommandEncoder() == nullptr);
  once->addCompletedHandler([](MTL::CommandBuffer*) {});
  once->enqueue();
  once->waitUntilCompleted();
  EXPECT_EQ(softmetal::counters().commandBuffers, uint64_t(1));
  std::vector<MTL::CommandBuffer*> most(64);
  for (MTL::CommandBuffer*& each : most) each = fixture.commandBuffer();
  EXPECT(fixture.queue()->commandBuffer() == nullptr);
  most[0]->commit();
  EXPECT(fixture.queue()->commandBuffer() != nullptr);
}

// What the Host device finds is an error of the command buffer and a violation.
TEST(SoftMetalExecution, PassesOnWhatTheHostDeviceFinds) {
  const EnvironmentVariable variable("MNK_HOST_CHECKING", "guarded");
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  std::fill_n(copy.numbersFrom(), 16, 7);
  copy->pushDebugGroup(text("Copy copy16 binds 0:64 1:64 reads 0:0+64 writes 1:0+16"));
  copy.dispatch();
  copy->popDebugGroup();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusError);
  EXPECT_EQ(copy.commands->error()->code(), NS::Integer(MTL::CommandBufferErrorPageFault));
  EXPECT_VIOLATIONS("MTLCommandBuffer 'work': Copy: kernel copy16 of library conformance");
}

TEST(SoftMetalText, PassesOnARaceThatNobodyDeclared) {
  const EnvironmentVariable variable("MNK_HOST_CHECKING", "full");
  const SoftMetalFixture fixture;
  for (const bool isOrdered : {false, true}) {
    const auto copy = fixture.copy(MTL::DispatchTypeConcurrent);
    copy.dispatch();
    if (isOrdered) copy->memoryBarrier(MTL::BarrierScopeBuffers);
    copy.dispatch();
    copy.finish();
    EXPECT_EQ(copy.commands->status(), isOrdered ? MTL::CommandBufferStatusCompleted : MTL::CommandBufferStatusError);
    if (!isOrdered) EXPECT_VIOLATIONS("kernel copy16 of library conformance broke a rule in 'work'");
  }
}
