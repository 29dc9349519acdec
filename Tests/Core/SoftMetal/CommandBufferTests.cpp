#include <fmt/ranges.h>

#include <mutex>
#include <stdexcept>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalCommandBuffer, CallsHandlersOnAnotherThread) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer("thrower");
  std::mutex mutex;
  std::vector<std::string> calls;
  const auto note = [&, committer = std::this_thread::get_id()](const char* what, MTL::CommandBuffer* given) {
    const std::lock_guard lock(mutex);
    calls.push_back(given == commands && std::this_thread::get_id() != committer ? what : "wrong");
  };
  commands->addScheduledHandler([&](MTL::CommandBuffer* given) { note("scheduled", given); });
  commands->addCompletedHandler([&](MTL::CommandBuffer* given) {
    const Pool pool;
    note(given->status() == MTL::CommandBufferStatusCompleted ? "first" : "too early", given);
  });
  commands->addCompletedHandler([](MTL::CommandBuffer*) { throw std::runtime_error("no"); });
  commands->addCompletedHandler([&](MTL::CommandBuffer* given) { note("last", given); });
  commands->commit();
  softmetal::waitUntilIdle();
  EXPECT_EQ(fmt::format("{}", fmt::join(calls, " ")), "scheduled first last");
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
  {
    const Pool pool;
    fixture.commandBuffer("forgotten")->enqueue();
    fixture.commandBuffer()->commit();
  }
}

TEST(SoftMetalCommandBuffer, ReportsWhatIsDeallocatedTooEarly) {
  const SoftMetalFixture fixture;
  for (const bool isRetained : {true, false}) {
    for (const bool isEarly : {true, false}) {
      auto copy = isRetained ? fixture.copy() : fixture.unretainedCopy();
      EXPECT_EQ(copy.commands->retainedReferences(), isRetained);
      copy.numbersFrom()[15] = 99;
      copy.dispatch();
      copy->endEncoding();
      softmetal::faults().holdWork();
      copy.commands->commit();
      if (isEarly) copy.from.reset();
      softmetal::faults().releaseWork();
      copy.commands->waitUntilScheduled();
      copy.commands->waitUntilCompleted();
      if (isRetained || !isEarly) EXPECT_EQ(copy.numbersTo()[15], 99u);
    }
  }
  const auto descriptor = NS::TransferPtr(MTL::CommandBufferDescriptor::alloc()->init());
  descriptor->setRetainedReferences(false);
  MTL::CommandBuffer* const commands = fixture.queue()->commandBuffer(descriptor.get());
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  auto buffer = fixture.buffer("short-lived", 64);
  encoder->setBuffer(buffer.get(), 0, 0);
  encoder->endEncoding();
  buffer.reset();
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusError);
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
  once->waitUntilScheduled();
  once->commit();
  once->commit();
  EXPECT(once->computeCommandEncoder() == nullptr);
  once->addCompletedHandler([](MTL::CommandBuffer*) {});
  once->addScheduledHandler([](MTL::CommandBuffer*) {});
  once->enqueue();
  once->waitUntilCompleted();
  EXPECT_EQ(softmetal::counters().commandBuffers, uint64_t(1));
  const auto queue = NS::TransferPtr(fixture.device()->newCommandQueue(2));
  queue->setLabel(text("small"));
  MTL::CommandBuffer* const first = queue->commandBuffer();
  EXPECT(queue->commandBuffer() != nullptr);
  EXPECT(queue->commandBuffer() == nullptr);
  first->commit();
  EXPECT(queue->commandBuffer() != nullptr);
}

TEST(SoftMetalCommandBuffer, ReportsUnbalancedGroups) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const balanced = fixture.commandBuffer();
  balanced->pushDebugGroup(text("a"));
  balanced->popDebugGroup();
  balanced->commit();
  balanced->waitUntilCompleted();
  fixture.commandBuffer("popped")->popDebugGroup();
  MTL::CommandBuffer* const pushed = fixture.commandBuffer("pushed");
  pushed->pushDebugGroup(text("left open"));
  pushed->commit();
}
