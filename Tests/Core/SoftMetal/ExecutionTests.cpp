// What the Host device runs for command buffers. MetalSubmission has what reaches it.
#include <algorithm>

#include "Harness/EnvironmentVariable.hpp"
#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

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
        copy->setComputePipelineState(copy.pipeline.get());
        copy->setBuffer(chain.get(), i * 64, 0);
        copy->setBuffer(chain.get(), i * 64 + 64, 1);
        copy.dispatch();
        if (way == barriers) copy->memoryBarrier(MTL::BarrierScopeBuffers);
        if (way != encoders) continue;
        copy->endEncoding();
        copy.encoder = fixture.encoder(copy.commands, MTL::DispatchTypeConcurrent);
      }
      copy.finish();
      EXPECT_EQ(static_cast<uint32_t*>(chain->contents())[9 * 16], 123u);
    }
  }
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
