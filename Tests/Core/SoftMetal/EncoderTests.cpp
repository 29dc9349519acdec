// Each rule of encoding is broken once, and kept as narrowly as possible. Violations.inc has what is reported.
#include <vector>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;
using softmetal::Sampling;

namespace {

using Copy = SoftMetalFixture::Copy;

const std::vector<char> kBytes(4097);

void run(const Copy& c, MTL::Size group) {
  c->dispatchThreads(MTL::Size(4, 1, 1), group);
}
void runOne(const Copy& c) {
  c->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
}

void expectRefused(const Copy& copy) {
  copy.finish();
  NS::Error* const error = copy.commands->error();
  EXPECT(error && error->code() == MTL::CommandBufferErrorInvalidResource);
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusError);
  for (size_t i = 0; i < 64; ++i) EXPECT(static_cast<unsigned char*>(copy.to->contents())[i] == 0xFB);
}

void (*const kBroken[])(const Copy&) = {
    [](const Copy& c) { c->setBuffer(nullptr, 0, 1), c.dispatch(); },
    [](const Copy& c) { c->setBuffer(c.to.get(), 52, 1), runOne(c); },
    [](const Copy& c) { c->setBuffer(c.to.get(), 64, 1); },
    [](const Copy& c) { c->setBuffer(c.to.get(), 2, 1), c.dispatch(); },
    [](const Copy& c) { c->setBytes(kBytes.data(), 4097, 0); },
    [](const Copy& c) { c->setBytes(kBytes.data(), 0, 0); },
    [](const Copy& c) { c->setBytes(kBytes.data(), 8, 0), c.dispatch(); },
    [](const Copy& c) { c->setBytes(kBytes.data(), 64, 1), c.dispatch(); },
    [](const Copy& c) { c->setBuffer(c.from.get(), 0, 31); },
    [](const Copy& c) { c->setBytes("1234", 4, 31); },
    [](const Copy& c) { c->setThreadgroupMemoryLength(16, 8); },
    [](const Copy& c) { c->setThreadgroupMemoryLength(20, 1); },
    [](const Copy& c) { c->setThreadgroupMemoryLength(32768, 0), c->setThreadgroupMemoryLength(16, 1), c.dispatch(); },
    [](const Copy& c) { run(c, MTL::Size(32, 33, 1)); },
    [](const Copy& c) { run(c, MTL::Size(4, 0, 1)); },
    [](const Copy& c) { run(c, MTL::Size(uint64_t(1) << 62, 4, 1)); },
    [](const Copy& c) { c->dispatchThreadgroups(MTL::Size(0, 1, 1), MTL::Size(4, 1, 1)); },
    [](const Copy& c) { c->setComputePipelineState(nullptr); },
    [](const Copy& c) { c->popDebugGroup(); },
    [](const Copy& c) { c->pushDebugGroup(nullptr), c->popDebugGroup(); },
    [](const Copy& c) { c->pushDebugGroup(text("left open")); },
    [](const Copy& c) { c->setBuffer(reinterpret_cast<MTL::Buffer*>(c.pipeline.get()), 0, 0); },
};

void (*const kKept[])(const Copy&) = {
    [](const Copy& c) { c->setBuffer(c.to.get(), 48, 1), runOne(c); },
    [](const Copy& c) { c->setBuffer(c.to.get(), 63, 1); },
    [](const Copy& c) { c->setBuffer(c.to.get(), 2, 1); },  // without a dispatch
    [](const Copy& c) { c->setBuffer(c.from.get(), 0, 30), c->setThreadgroupMemoryLength(16, 7); },
    [](const Copy& c) { c->setThreadgroupMemoryLength(32768, 0), c.dispatch(); },
    [](const Copy& c) { run(c, MTL::Size(32, 32, 1)); },
    [](const Copy& c) { c->pushDebugGroup(text("a")), c->popDebugGroup(); },
};

}  // namespace

TEST(SoftMetalEncoder, ReportsBrokenRules) {
  const SoftMetalFixture fixture;
  for (const auto& breakIn : kBroken) {
    const Context context(fmt::format("broken rule {}", &breakIn - kBroken));
    const auto copy = fixture.copy();
    breakIn(copy);
    expectRefused(copy);
  }
}

TEST(SoftMetalEncoder, TakesWhatIsJustAllowed) {
  const SoftMetalFixture fixture;
  for (const auto& keep : kKept) {
    const Context context(fmt::format("kept rule {}", &keep - kKept));
    const auto copy = fixture.copy();
    keep(copy);
    copy.finish();
    EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusCompleted);
  }
  const auto copy = fixture.copy();
  std::vector<uint32_t> values(1024, 3);
  copy->setBytes(values.data(), 4096, 0);
  values.assign(1024, 4);  // bytes are copied at once
  copy.dispatch();
  copy.finish();
  EXPECT_EQ(copy.numbersTo()[7], 3u);
  EXPECT_EQ(softmetal::counters().inlineBytes, uint64_t(4096));
}

TEST(SoftMetalEncoder, ChecksWhatPipelinesNeed) {
  const SoftMetalFixture fixture({.staticThreadgroupMemoryLength = 32768 - 16});
  const auto tree = fixture.pipeline("threadgroupTree");
  const auto summed = fixture.copy();
  summed->setComputePipelineState(tree.get());
  summed.dispatch();
  expectRefused(summed);
  const auto copy = fixture.copy();
  copy->setThreadgroupMemoryLength(16, 0);
  copy.dispatch();
  copy->setThreadgroupMemoryLength(32, 0);
  copy.dispatch();
  expectRefused(copy);
}

TEST(SoftMetalEncoder, NeedsAFamilyForUnevenGrids) {
  const SoftMetalFixture fixture({.families = {MTL::GPUFamilyApple3}});
  const auto copy = fixture.copy();
  copy->dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(4, 1, 1));
  copy.dispatch();
  expectRefused(copy);
}

TEST(SoftMetalEncoder, NeedsAPipelineAndAnEnd) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const open = fixture.commandBuffer("open");
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(open);
  encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  EXPECT(open->computeCommandEncoder() == nullptr);
  open->commit();
  encoder->endEncoding();
  MTL::CommandBuffer* const dropped = fixture.commandBuffer("dropped");
  {
    const Pool pool;
    fixture.encoder(dropped);
  }
  dropped->commit();
  dropped->waitUntilCompleted();
  EXPECT(open->status() == MTL::CommandBufferStatusError && dropped->status() == MTL::CommandBufferStatusError);
}

TEST(SoftMetalEncoder, ReportsCallsAfterTheEnd) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy->endEncoding();
  copy.dispatch();
  copy->dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  copy->setComputePipelineState(copy.pipeline.get());
  copy->setBuffer(copy.from.get(), 0, 0);
  copy->setBytes("1234", 4, 0);
  copy->setThreadgroupMemoryLength(16, 0);
  copy->memoryBarrier(MTL::BarrierScopeBuffers);
  copy->pushDebugGroup(text("g"));
  copy->popDebugGroup();
  copy->endEncoding();
}

TEST(SoftMetalEncoder, ReportsObjectsOfAnotherDevice) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  const auto foreign = NS::TransferPtr(other->newBuffer(64, MTL::ResourceStorageModeShared));
  foreign->setLabel(text("foreign"));
  copy->setBuffer(foreign.get(), 0, 0);
  const auto queue = NS::TransferPtr(other->newCommandQueue());
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(queue->commandBuffer());
  encoder->setComputePipelineState(copy.pipeline.get());
  encoder->endEncoding();
  expectRefused(copy);
}

// Timestamps. MetalOpTimes has what they measure.
TEST(SoftMetalCounters, HaveRules) {
  for (const auto& [at, note] : {std::pair(Sampling::passes, ", passes"), {Sampling::dispatches, ", dispatches"}}) {
    const SoftMetalFixture fixture({.sampling = at}, note);
    const auto descriptor = NS::TransferPtr(MTL::CounterSampleBufferDescriptor::alloc()->init());
    descriptor->setCounterSet(fixture.device()->counterSets()->object<MTL::CounterSet>(0));
    descriptor->setStorageMode(MTL::StorageModeShared);
    descriptor->setSampleCount(2);
    NS::Error* error = nullptr;
    const auto samples = NS::TransferPtr(fixture.device()->newCounterSampleBuffer(descriptor.get(), &error));
    const auto copy = fixture.copy();
    copy->sampleCountersInBuffer(samples.get(), 2, true);
    copy.finish();
    EXPECT(!samples->resolveCounterRange(NS::Range(1, 2)));
  }
}
