// Each rule of encoding is broken once; the rest of each test keeps it.
#include <vector>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

namespace {

// Commits what broke a rule: it must not run.
void expectRefused(const char* file, int line, const SoftMetalFixture::Copy& copy) {
  copy.finish();
  if (copy.commands->status() != MTL::CommandBufferStatusError) fail(file, line, "the work was run");
  NS::Error* const error = copy.commands->error();
  if (!error || error->code() != MTL::CommandBufferErrorInvalidResource) fail(file, line, "another error");
}
#define EXPECT_REFUSED(copy) expectRefused(__FILE__, __LINE__, copy)

void expectRuns(const char* file, int line, const SoftMetalFixture::Copy& copy) {
  copy.finish();
  if (copy.commands->status() != MTL::CommandBufferStatusCompleted) fail(file, line, "the work failed");
}
#define EXPECT_RUNS(copy) expectRuns(__FILE__, __LINE__, copy)

}  // namespace

TEST(SoftMetalEncoder, TellsOfAnUnboundArgument) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setBuffer(nullptr, 0, 1);
  copy.dispatch();
  EXPECT_VIOLATIONS(
      "MTLComputeCommandEncoder 'step' of MTLCommandBuffer 'work': kernel copy16: nothing is bound at "
      "buffer 1");
  EXPECT_REFUSED(copy);
  for (size_t i = 0; i < 64; ++i) EXPECT(static_cast<unsigned char*>(copy.to->contents())[i] == 0xFB);
}

TEST(SoftMetalEncoder, TellsOfARangeThatIsTooShort) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setBufferOffset(48, 1);  // one element
  copy.encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  EXPECT_NO_VIOLATION();
  copy.encoder->setBufferOffset(52, 1);
  copy.encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  EXPECT_VIOLATIONS("12 bytes of MTLBuffer 'to' are bound at buffer 1, expected at least 16");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfAnOffsetBeyondTheEnd) {
  const SoftMetalFixture fixture;
  const auto first = fixture.copy();
  first.encoder->setBuffer(first.to.get(), 63, 1);
  EXPECT_NO_VIOLATION();
  first.encoder->setBuffer(first.to.get(), 64, 1);
  EXPECT_VIOLATIONS("offset 64 at buffer 1 lies beyond the end of MTLBuffer 'to' of 64 bytes");
  EXPECT_REFUSED(first);
  const auto second = fixture.copy();
  second.encoder->setBufferOffset(1000, 0);
  EXPECT_VIOLATIONS("offset 1000 at buffer 0 lies beyond the end of MTLBuffer 'from'");
  second.encoder->setBufferOffset(0, 7);
  EXPECT_VIOLATIONS("setBufferOffset: at buffer 7, where no buffer is bound");
  EXPECT_REFUSED(second);
}

TEST(SoftMetalEncoder, TellsOfAMisalignedOffset) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setBuffer(copy.to.get(), 2, 1);
  EXPECT_NO_VIOLATION();
  copy.dispatch();
  EXPECT_VIOLATIONS("buffer 1 is bound at byte 2 of MTLBuffer 'to', expected a multiple of 16");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfInlineBytesOfTheWrongSize) {
  const SoftMetalFixture fixture;
  const std::vector<char> bytes(4097);
  const auto copy = fixture.copy();
  copy.encoder->setBytes(bytes.data(), 4096, 0);
  copy.dispatch();
  EXPECT_RUNS(copy);
  EXPECT_EQ(static_cast<char*>(copy.to->contents())[0], 0);
  EXPECT_EQ(softmetal::counters().inlineBytes, uint64_t(4096));
  const auto large = fixture.copy();
  large.encoder->setBytes(bytes.data(), 4097, 0);
  EXPECT_VIOLATIONS("setBytes: has 4097 bytes at buffer 0, expected 1 to 4096");
  EXPECT_REFUSED(large);
  const auto empty = fixture.copy();
  empty.encoder->setBytes(bytes.data(), 0, 0);
  EXPECT_VIOLATIONS("setBytes: has 0 bytes at buffer 0");
  EXPECT_REFUSED(empty);
  const auto small = fixture.copy();
  small.encoder->setBytes(bytes.data(), 8, 0);
  small.dispatch();
  EXPECT_VIOLATIONS("8 bytes are set at buffer 0, expected at least 16");
  EXPECT_REFUSED(small);
  const auto written = fixture.copy();
  written.encoder->setBytes(bytes.data(), 64, 1);
  written.dispatch();
  EXPECT_VIOLATIONS("setBytes: is used for buffer 1, which the kernel writes");
  EXPECT_REFUSED(written);
}

TEST(SoftMetalEncoder, CopiesInlineBytesAtOnce) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  std::vector<uint32_t> values(16, 3);
  copy.encoder->setBytes(values.data(), 64, 0);
  values.assign(16, 4);
  copy.dispatch();
  EXPECT_RUNS(copy);
  EXPECT_EQ(static_cast<uint32_t*>(copy.to->contents())[7], 3u);
}

TEST(SoftMetalEncoder, TellsOfIndicesOutOfRange) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setBuffer(copy.from.get(), 0, 30);
  copy.encoder->setThreadgroupMemoryLength(16, 7);
  EXPECT_NO_VIOLATION();
  copy.encoder->setBuffer(copy.from.get(), 0, 31);
  EXPECT_VIOLATIONS("setBuffer: has index 31, expected at most 30");
  copy.encoder->setBytes("1234", 4, 31);
  EXPECT_VIOLATIONS("setBytes: has index 31, expected at most 30");
  copy.encoder->setBufferOffset(0, 99);
  EXPECT_VIOLATIONS("setBufferOffset: has index 99, expected at most 30");
  copy.encoder->setThreadgroupMemoryLength(16, 8);
  EXPECT_VIOLATIONS("setThreadgroupMemoryLength: has index 8, expected at most 7");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfThreadgroupMemory) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setThreadgroupMemoryLength(32768, 0);
  copy.dispatch();
  EXPECT_NO_VIOLATION();
  copy.encoder->setThreadgroupMemoryLength(16, 1);
  copy.dispatch();
  EXPECT_VIOLATIONS("32784 bytes of threadgroup memory are more than the device's 32768");
  copy.encoder->setThreadgroupMemoryLength(20, 1);
  EXPECT_VIOLATIONS("setThreadgroupMemoryLength: has 20 bytes, expected a multiple of 16");
  EXPECT_REFUSED(copy);
  const auto tree = fixture.pipeline("threadgroupTree");
  const auto summed = fixture.copy();
  summed.encoder->setComputePipelineState(tree.get());
  summed.dispatch();
  EXPECT_VIOLATIONS("kernel threadgroupTree: no length is set for threadgroup memory 0");
  EXPECT_REFUSED(summed);
}

TEST(SoftMetalEncoder, CountsStaticThreadgroupMemory) {
  const SoftMetalFixture fixture({.staticThreadgroupMemoryLength = 32768 - 16});
  const auto copy = fixture.copy();
  copy.encoder->setThreadgroupMemoryLength(16, 0);
  copy.dispatch();
  EXPECT_NO_VIOLATION();
  copy.encoder->setThreadgroupMemoryLength(32, 0);
  copy.dispatch();
  EXPECT_VIOLATIONS("32784 bytes of threadgroup memory are more than the device's 32768");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfThreadgroupsThatAreTooLarge) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(32, 32, 1));
  EXPECT_NO_VIOLATION();
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(32, 33, 1));
  EXPECT_VIOLATIONS("threads per threadgroup 32x33x1 are more than the pipeline's 1024");
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(4, 0, 1));
  EXPECT_VIOLATIONS("threads per threadgroup 4x0x1 has a zero");
  copy.encoder->dispatchThreadgroups(MTL::Size(0, 1, 1), MTL::Size(4, 1, 1));
  EXPECT_VIOLATIONS("the grid 0x1x1 has a zero");
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(uint64_t(1) << 62, 4, 1));
  EXPECT_VIOLATIONS("are more than the pipeline's 1024");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfABrokenPromiseAboutWidths) {
  const SoftMetalFixture fixture;
  const auto descriptor = NS::TransferPtr(MTL::ComputePipelineDescriptor::alloc()->init());
  const auto function = NS::TransferPtr(fixture.library()->newFunction(text("copy16")));
  descriptor->setComputeFunction(function.get());
  descriptor->setThreadGroupSizeIsMultipleOfThreadExecutionWidth(true);
  NS::Error* error = nullptr;
  const auto promised = NS::TransferPtr(
      fixture.device()->newComputePipelineState(descriptor.get(), MTL::PipelineOptionNone, nullptr, &error));
  const auto copy = fixture.copy();
  copy.encoder->setComputePipelineState(promised.get());
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(64, 1, 1));
  EXPECT_NO_VIOLATION();
  copy.encoder->dispatchThreads(MTL::Size(4, 1, 1), MTL::Size(48, 1, 1));
  EXPECT_VIOLATIONS("the pipeline was promised whole simdgroups of 32, got 48 threads");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfADispatchWithoutAPipeline) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  MTL::CommandBuffer* const commands = fixture.commandBuffer("bare");
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  EXPECT_VIOLATIONS("MTLComputeCommandEncoder 'step' of MTLCommandBuffer 'bare': a dispatch without a pipeline");
  encoder->endEncoding();
  copy.encoder->setComputePipelineState(nullptr);
  EXPECT_VIOLATIONS("setComputePipelineState: was given nil", "setComputePipelineState: has no pipeline");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfEncodersThatAreNotEnded) {
  const SoftMetalFixture fixture;
  MTL::CommandBuffer* const open = fixture.commandBuffer("open");
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(open);
  EXPECT(open->computeCommandEncoder() == nullptr);
  EXPECT_VIOLATIONS("MTLCommandBuffer 'open' was asked for an encoder while MTLComputeCommandEncoder 'step' is open");
  open->commit();
  EXPECT_VIOLATIONS("MTLCommandBuffer 'open' was committed while MTLComputeCommandEncoder 'step' is open");
  encoder->endEncoding();
  open->waitUntilCompleted();
  EXPECT_EQ(open->status(), MTL::CommandBufferStatusError);
  MTL::CommandBuffer* const dropped = fixture.commandBuffer("dropped");
  {
    const Pool pool;
    fixture.encoder(dropped);
  }
  EXPECT_VIOLATIONS(
      "MTLComputeCommandEncoder 'step' of MTLCommandBuffer 'dropped': it was released without endEncoding");
  dropped->commit();
  dropped->waitUntilCompleted();
  EXPECT_EQ(dropped->status(), MTL::CommandBufferStatusError);
}

TEST(SoftMetalEncoder, TellsOfCallsAfterTheEnd) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->endEncoding();
  const auto expect = [&](const char* call) { EXPECT_VIOLATIONS(fmt::format("{} was sent after endEncoding", call)); };
  copy.dispatch();
  expect("dispatchThreads:");
  copy.encoder->dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  expect("dispatchThreadgroups:");
  copy.encoder->setComputePipelineState(copy.pipeline.get());
  expect("setComputePipelineState:");
  copy.encoder->setBuffer(copy.from.get(), 0, 0);
  expect("setBuffer:offset:atIndex:");
  copy.encoder->setBufferOffset(0, 0);
  expect("setBufferOffset:atIndex:");
  copy.encoder->setBytes("1234", 4, 0);
  expect("setBytes:length:atIndex:");
  copy.encoder->setThreadgroupMemoryLength(16, 0);
  expect("setThreadgroupMemoryLength:");
  copy.encoder->memoryBarrier(MTL::BarrierScopeBuffers);
  expect("memoryBarrierWithScope:");
  copy.encoder->useResource(copy.from.get(), MTL::ResourceUsageRead);
  expect("useResource:usage:");
  copy.encoder->pushDebugGroup(text("g"));
  expect("pushDebugGroup:");
  copy.encoder->popDebugGroup();
  expect("popDebugGroup");
  copy.encoder->insertDebugSignpost(text("g"));
  expect("insertDebugSignpost:");
  copy.encoder->endEncoding();
  expect("endEncoding");
  EXPECT(copy.encoder->label() != nullptr);
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalEncoder, TellsOfUnbalancedGroups) {
  const SoftMetalFixture fixture;
  const auto balanced = fixture.copy();
  balanced.encoder->pushDebugGroup(text("outer"));
  balanced.encoder->pushDebugGroup(text("inner"));
  balanced.encoder->insertDebugSignpost(text("here"));
  balanced.encoder->popDebugGroup();
  balanced.encoder->popDebugGroup();
  EXPECT_RUNS(balanced);
  const auto popped = fixture.copy();
  popped.encoder->popDebugGroup();
  EXPECT_VIOLATIONS("popDebugGroup without a group that is open");
  EXPECT_REFUSED(popped);
  const auto nameless = fixture.copy();
  nameless.encoder->pushDebugGroup(nullptr);
  EXPECT_VIOLATIONS("pushDebugGroup: has no text");
  nameless.encoder->popDebugGroup();
  EXPECT_REFUSED(nameless);
  const auto pushed = fixture.copy();
  pushed.encoder->pushDebugGroup(text("left open"));
  EXPECT_REFUSED(pushed);
  EXPECT_VIOLATIONS("endEncoding inside of debug group 'left open'");
}

TEST(SoftMetalEncoder, TellsOfObjectsOfAnotherDevice) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  softmetal::machine().devices[0].name = "another";
  const auto other = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  const auto foreign = NS::TransferPtr(other->newBuffer(64, MTL::ResourceStorageModeShared));
  foreign->setLabel(text("foreign"));
  copy.encoder->setBuffer(foreign.get(), 0, 0);
  EXPECT_VIOLATIONS("MTLBuffer 'foreign' belongs to another device, MTLDevice 'another'");
  copy.encoder->useResource(foreign.get(), MTL::ResourceUsageRead);
  EXPECT_VIOLATIONS("MTLBuffer 'foreign' belongs to another device");
  const auto queue = NS::TransferPtr(other->newCommandQueue());
  MTL::CommandBuffer* const commands = queue->commandBuffer();
  MTL::ComputeCommandEncoder* const encoder = fixture.encoder(commands);
  encoder->setComputePipelineState(copy.pipeline.get());
  EXPECT_VIOLATIONS("MTLComputePipelineState without a label belongs to another device, MTLDevice 'Soft M1'");
  encoder->endEncoding();
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, TellsOfObjectsOfAnotherClass) {
  const SoftMetalFixture fixture;
  const auto copy = fixture.copy();
  copy.encoder->setBuffer(reinterpret_cast<MTL::Buffer*>(copy.pipeline.get()), 0, 0);
  EXPECT_VIOLATIONS("setBuffer:offset:atIndex: was given MTLComputePipelineState without a label, expected MTLBuffer",
                    "setBuffer: has no buffer");
  EXPECT_REFUSED(copy);
}

TEST(SoftMetalEncoder, NeedsAFamilyForUnevenGrids) {
  const SoftMetalFixture fixture({.families = {MTL::GPUFamilyApple3}});
  const auto copy = fixture.copy();
  copy.encoder->dispatchThreadgroups(MTL::Size(1, 1, 1), MTL::Size(4, 1, 1));
  EXPECT_NO_VIOLATION();
  copy.dispatch();
  EXPECT_VIOLATIONS("dispatchThreads: needs nonuniform threadgroups");
  EXPECT_REFUSED(copy);
}
