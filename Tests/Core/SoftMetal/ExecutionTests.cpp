#include <fmt/ranges.h>

#include <cstring>

#include "Harness/EnvironmentVariable.hpp"
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalExecution, RunsADispatch) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  std::memset(copy.from->contents(), 7, 64);
  copy.dispatch();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusCompleted);
  EXPECT(copy.commands->error() == nullptr);
  EXPECT_EQ(std::memcmp(copy.from->contents(), copy.to->contents(), 64), 0);
  EXPECT(copy.commands->GPUStartTime() > 0);
  EXPECT(copy.commands->GPUEndTime() >= copy.commands->GPUStartTime());
}

// With a seed, the Host device runs dispatches that nothing orders in a random order.
TEST(SoftMetalExecution, OrdersWhatMustBeOrdered) {
  enum Way { serial, barriers, encoders };
  for (const char* seed : {"1", "2", "3"}) {
    const EnvironmentVariable variable("MNK_HOST_SEED", seed);
    const SoftMetalFixture fixture;
    for (const Way way : {serial, barriers, encoders}) {
      const Context context(fmt::format("seed {}, way {}", seed, static_cast<int>(way)));
      auto copy = fixture.copy(way == serial ? MTL::DispatchTypeSerial : MTL::DispatchTypeConcurrent);
      const auto chain = fixture.buffer("chain", 10 * 64);
      static_cast<uint32_t*>(chain->contents())[0] = 123;
      for (size_t i = 0; i < 9; ++i) {
        copy.encoder->setComputePipelineState(copy.pipeline.get());
        copy.encoder->setBuffer(chain.get(), i * 64, 0);
        copy.encoder->setBuffer(chain.get(), i * 64 + 64, 1);
        copy.dispatch();
        if (way == barriers) copy.encoder->memoryBarrier(MTL::BarrierScopeBuffers);
        if (way == encoders) {
          copy.encoder->endEncoding();
          copy.encoder = fixture.encoder(copy.commands, MTL::DispatchTypeConcurrent);
        }
      }
      copy.finish();
      EXPECT_EQ(static_cast<uint32_t*>(chain->contents())[9 * 16], 123u);
    }
  }
}

TEST(SoftMetalExecution, RunsInPrivateMemoryAtOffsets) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  const auto hidden = NS::TransferPtr(fixture.device()->newBuffer(128, MTL::ResourceStorageModePrivate));
  static_cast<uint32_t*>(copy.from->contents())[0] = 77;
  copy.encoder->setBuffer(hidden.get(), 64, 1);
  copy.dispatch();
  copy.encoder->setBuffer(hidden.get(), 0, 0);
  copy.encoder->setBufferOffset(64, 0);
  copy.encoder->setBuffer(copy.to.get(), 0, 1);
  copy.dispatch();
  copy.finish();
  EXPECT_EQ(static_cast<uint32_t*>(copy.to->contents())[0], 77u);
}

TEST(SoftMetalExecution, ShowsWhatWasEncoded) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy(MTL::DispatchTypeConcurrent);
  copy.encoder->dispatchThreads(MTL::Size(2, 1, 1), MTL::Size(4, 2, 1));
  copy.encoder->memoryBarrier(MTL::BarrierScopeBuffers);
  copy.encoder->pushDebugGroup(text("named"));
  copy.encoder->dispatchThreadgroups(MTL::Size(2, 1, 1), MTL::Size(2, 1, 1));
  copy.encoder->popDebugGroup();
  copy.encoder->endEncoding();
  copy.commands->computeCommandEncoder()->endEncoding();
  copy.commands->commit();
  copy.commands->waitUntilCompleted();
  EXPECT_EQ(fmt::format("{}", fmt::join(softmetal::trace(), ", ")),
            "encoder 'step' concurrent, dispatch copy16 grid 2x1x1 group 4x2x1, barrier, dispatch copy16 groups 2x1x1 "
            "group 2x1x1, encoder '' serial");
  EXPECT(softmetal::debugGroups() == std::vector<std::string>({"", "named"}));
  const auto counted = softmetal::counters();
  EXPECT_EQ(counted.commandBuffers, uint64_t(1));
  EXPECT_EQ(counted.encoders, uint64_t(2));
  EXPECT_EQ(counted.dispatches, uint64_t(2));
  EXPECT_EQ(counted.barriers, uint64_t(1));
  EXPECT_EQ(counted.pipelines, uint64_t(1));
  EXPECT_EQ(counted.buffers, uint64_t(2));
}

// What the Host device finds is an error of the command buffer and a violation.
TEST(SoftMetalExecution, PassesOnWhatTheHostDeviceFinds) {
  const EnvironmentVariable variable("MNK_HOST_CHECKING", "guarded");
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  std::memset(copy.from->contents(), 7, 64);
  copy.encoder->pushDebugGroup(text("Copy copy16 binds 0:64 1:64 reads 0:0+64 writes 1:0+16"));
  copy.dispatch();
  copy.encoder->popDebugGroup();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusError);
  EXPECT_EQ(copy.commands->error()->code(), NS::Integer(MTL::CommandBufferErrorPageFault));
  EXPECT_VIOLATIONS("MTLCommandBuffer 'work': Copy: kernel copy16 of library conformance");
}

TEST(SoftMetalText, PassesOnARaceThatNobodyDeclared) {
  const EnvironmentVariable variable("MNK_HOST_CHECKING", "full");
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy(MTL::DispatchTypeConcurrent);
  copy.dispatch();
  copy.dispatch();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusError);
  EXPECT_VIOLATIONS("kernel copy16 of library conformance broke a rule in 'work'");
  const auto ordered = fixture.copy(MTL::DispatchTypeConcurrent);
  ordered.dispatch();
  ordered.encoder->memoryBarrier(MTL::BarrierScopeBuffers);
  ordered.dispatch();
  ordered.finish();
  EXPECT_EQ(ordered.commands->status(), MTL::CommandBufferStatusCompleted);
}
