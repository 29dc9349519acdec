#include <fmt/ranges.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalCommandBuffer, GoesThroughItsStates) {
  const SoftMetalFixture fixture;
  softmetal::faults().holdWork();
  MTL::CommandBuffer* const commands = fixture.commandBuffer();
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusNotEnqueued);
  commands->enqueue();
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusEnqueued);
  commands->commit();
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusCommitted);
  softmetal::faults().releaseWork();
  commands->waitUntilScheduled();
  EXPECT(commands->status() >= MTL::CommandBufferStatusScheduled);
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusCompleted);
  EXPECT(commands->device() == fixture.device() && commands->commandQueue() == fixture.queue());
  EXPECT(commands->kernelEndTime() >= commands->kernelStartTime());
}

TEST(SoftMetalCommandBuffer, CallsHandlersOnAnotherThread) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer();
  std::mutex mutex;
  std::vector<std::string> calls;
  const auto note = [&, committer = std::this_thread::get_id()](const char* what, MTL::CommandBuffer* given) {
    const std::lock_guard lock(mutex);
    const bool isRight = given == commands && std::this_thread::get_id() != committer;
    calls.push_back(isRight ? what : "wrong");
  };
  commands->addScheduledHandler([&](MTL::CommandBuffer* given) { note("scheduled", given); });
  commands->addCompletedHandler([&](MTL::CommandBuffer* given) {
    const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    note(given->status() == MTL::CommandBufferStatusCompleted ? "first" : "too early", given);
  });
  commands->addCompletedHandler([&](MTL::CommandBuffer* given) { note("second", given); });
  commands->commit();
  softmetal::waitUntilIdle();
  EXPECT_EQ(fmt::format("{}", fmt::join(calls, " ")), "scheduled first second");
}

TEST(SoftMetalCommandBuffer, RunsInTheOrderOfTheQueue) {
  const SoftMetalFixture fixture;
  std::mutex mutex;
  std::vector<int> order;
  MTL::CommandBuffer* buffers[3];
  for (int i = 0; i < 3; ++i) {
    buffers[i] = fixture.commandBuffer();
    buffers[i]->addCompletedHandler([&, i](MTL::CommandBuffer*) {
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
  }
  buffers[1]->enqueue();
  buffers[0]->commit();
  EXPECT_EQ(buffers[0]->status(), MTL::CommandBufferStatusCommitted);  // behind one that is not committed
  buffers[2]->commit();
  buffers[1]->commit();
  buffers[2]->waitUntilCompleted();
  softmetal::waitUntilIdle();
  EXPECT(order == std::vector<int>({1, 0, 2}));
}

TEST(SoftMetalCommandBuffer, KeepsWhatItUses) {
  const SoftMetalFixture fixture;
  auto copy = fixture.copy();
  EXPECT(copy.commands->retainedReferences());
  static_cast<uint32_t*>(copy.from->contents())[15] = 99;
  const auto to = NS::RetainPtr(copy.to.get());
  copy.dispatch();
  copy.encoder->endEncoding();
  softmetal::faults().holdWork();
  copy.commands->commit();
  copy.from.reset();
  copy.to.reset();
  copy.pipeline.reset();
  softmetal::faults().releaseWork();
  copy.commands->waitUntilCompleted();
  EXPECT_EQ(static_cast<uint32_t*>(to->contents())[15], 99u);
}

TEST(SoftMetalCommandBuffer, TellsOfWhatIsGoneTooEarly) {
  const SoftMetalFixture fixture;
  for (const bool early : {true, false}) {
    const Context context(early ? "at once" : "at the end");
    auto copy = fixture.copy();
    MTL::CommandBuffer* const commands = fixture.queue()->commandBufferWithUnretainedReferences();
    commands->setLabel(text("careless"));
    EXPECT(!commands->retainedReferences());
    MTL::ComputeCommandEncoder* const encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(copy.pipeline.get());
    encoder->setBuffer(copy.from.get(), 0, 0);
    encoder->setBuffer(copy.to.get(), 0, 1);
    encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
    encoder->endEncoding();
    copy.encoder->endEncoding();
    copy.commands->commit();  // it retains the buffers, so it must be done first
    copy.commands->waitUntilCompleted();
    softmetal::faults().holdWork();
    commands->commit();
    if (early) copy.to.reset();
    softmetal::faults().releaseWork();
    commands->waitUntilCompleted();
    if (early) {
      EXPECT_VIOLATIONS("MTLBuffer 'to' was deallocated while a command buffer that does not retain it still uses it");
    } else {
      EXPECT_NO_VIOLATION();
    }
  }
}

TEST(SoftMetalCommandBuffer, DoesNotRunWithTheDead) {
  const SoftMetalFixture fixture;
  const auto descriptor = NS::TransferPtr(MTL::CommandBufferDescriptor::alloc()->init());
  descriptor->setRetainedReferences(false);
  MTL::CommandBuffer* const commands = fixture.queue()->commandBuffer(descriptor.get());
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  auto buffer = fixture.buffer("short-lived", 64);
  encoder->setBuffer(buffer.get(), 0, 0);
  encoder->endEncoding();
  buffer.reset();
  EXPECT_VIOLATIONS("MTLBuffer 'short-lived' was deallocated while");
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_VIOLATIONS("uses MTLBuffer 'short-lived', which is deallocated");
  EXPECT_EQ(commands->status(), MTL::CommandBufferStatusError);
}

TEST(SoftMetalCommandBuffer, DoesNotDispatchWithTheDead) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.queue()->commandBufferWithUnretainedReferences();
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  auto pipeline = fixture.pipeline("copy16");
  auto buffer = fixture.buffer("short-lived", 64);
  encoder->setComputePipelineState(pipeline.get());
  encoder->setBuffer(buffer.get(), 0, 0);
  encoder->setBuffer(buffer.get(), 0, 1);
  buffer.reset();
  EXPECT_VIOLATIONS("was deallocated while");
  encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
  EXPECT_VIOLATIONS("kernel copy16: MTLBuffer 'short-lived' at buffer 0 is deallocated",
                    "kernel copy16: MTLBuffer 'short-lived' at buffer 1 is deallocated");
  pipeline.reset();
  EXPECT_VIOLATIONS("MTLComputePipelineState without a label was deallocated while");
  encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
  EXPECT_VIOLATIONS("MTLComputePipelineState without a label is deallocated");
  encoder->endEncoding();
}

TEST(SoftMetalCommandBuffer, TellsOfUseAfterTheCommit) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer("once");
  commands->commit();
  commands->commit();
  EXPECT_VIOLATIONS("commit was sent to MTLCommandBuffer 'once', which is committed");
  EXPECT(commands->computeCommandEncoder() == nullptr);
  EXPECT_VIOLATIONS("computeCommandEncoder was sent to MTLCommandBuffer 'once', which is committed");
  commands->addCompletedHandler([](MTL::CommandBuffer*) {});
  EXPECT_VIOLATIONS("addCompletedHandler: was sent to MTLCommandBuffer 'once', which is committed");
  commands->addScheduledHandler([](MTL::CommandBuffer*) {});
  EXPECT_VIOLATIONS("addScheduledHandler: was sent to");
  commands->enqueue();
  EXPECT_VIOLATIONS("enqueue was sent to");
  commands->waitUntilCompleted();
  EXPECT_EQ(softmetal::counters().commandBuffers, uint64_t(1));
}

TEST(SoftMetalCommandBuffer, TellsOfWaitingForEver) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer("idle");
  commands->waitUntilCompleted();
  EXPECT_VIOLATIONS("waitUntilCompleted was sent to MTLCommandBuffer 'idle', which is not committed");
  commands->waitUntilScheduled();
  EXPECT_VIOLATIONS("waitUntilScheduled was sent to MTLCommandBuffer 'idle', which is not committed");
}

TEST(SoftMetalCommandBuffer, TellsOfOneThatIsEnqueuedAndForgotten) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const next = fixture.commandBuffer();
  {
    const Pool pool;
    fixture.commandBuffer("forgotten")->enqueue();
    next->commit();
    EXPECT_EQ(next->status(), MTL::CommandBufferStatusCommitted);
  }
  EXPECT_VIOLATIONS("MTLCommandBuffer 'forgotten' was enqueued and never committed");
  next->waitUntilCompleted();
}

TEST(SoftMetalCommandBuffer, TellsOfTooMany) {
  const SoftMetalFixture fixture;
  const auto queue = NS::TransferPtr(fixture.device()->newCommandQueue(2));
  queue->setLabel(text("small"));
  MTL::CommandBuffer* const first = queue->commandBuffer();
  EXPECT(queue->commandBuffer() != nullptr);
  EXPECT_NO_VIOLATION();
  EXPECT(queue->commandBuffer() == nullptr);
  EXPECT_VIOLATIONS("MTLCommandQueue 'small' has 2 command buffers that are not committed");
  first->commit();
  EXPECT(queue->commandBuffer() != nullptr);
}

TEST(SoftMetalCommandBuffer, TellsOfAnExceptionInAHandler) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const commands = fixture.commandBuffer("thrower");
  std::atomic<int> calls = 0;
  commands->addCompletedHandler([](MTL::CommandBuffer*) { throw std::runtime_error("no"); });
  commands->addCompletedHandler([&](MTL::CommandBuffer*) { calls += 1; });
  commands->commit();
  softmetal::waitUntilIdle();
  EXPECT_VIOLATIONS("a handler of MTLCommandBuffer 'thrower' threw an exception");
  EXPECT_EQ(calls.load(), 1);
}

TEST(SoftMetalCommandBuffer, TellsOfUnbalancedGroups) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const balanced = fixture.commandBuffer();
  balanced->pushDebugGroup(text("a"));
  balanced->popDebugGroup();
  balanced->commit();
  balanced->waitUntilCompleted();
  EXPECT_NO_VIOLATION();
  MTL::CommandBuffer* const popped = fixture.commandBuffer("popped");
  popped->popDebugGroup();
  EXPECT_VIOLATIONS("MTLCommandBuffer 'popped': popDebugGroup without a group");
  MTL::CommandBuffer* const pushed = fixture.commandBuffer("pushed");
  pushed->pushDebugGroup(text("left open"));
  pushed->commit();
  EXPECT_VIOLATIONS("MTLCommandBuffer 'pushed' was committed inside of debug group 'left open'");
}

TEST(SoftMetalCommandBuffer, RunsForManyThreads) {
  const SoftMetalFixture fixture;
  const auto pipeline = fixture.pipeline("copy16");
  std::atomic<int> completed = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t k = 0; k < 20; ++k) {
        const Pool pool;
        const auto from = fixture.buffer("from", 64), to = fixture.buffer("to", 64);
        static_cast<uint32_t*>(from->contents())[15] = 100 * t + k;
        MTL::CommandBuffer* const commands = fixture.commandBuffer();
        MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
        encoder->setComputePipelineState(pipeline.get());
        encoder->setBuffer(from.get(), 0, 0);
        encoder->setBuffer(to.get(), 0, 1);
        encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 1, 1));
        encoder->endEncoding();
        commands->addCompletedHandler([&](MTL::CommandBuffer*) { completed += 1; });
        commands->commit();
        commands->waitUntilCompleted();
        if (static_cast<uint32_t*>(to->contents())[15] != 100 * t + k) completed += 1000;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  softmetal::waitUntilIdle();
  EXPECT_EQ(completed.load(), 80);
}
