// Each fault that a test can ask for.
#include <atomic>
#include <thread>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;
using softmetal::Call;
using softmetal::faults;

namespace {

bool isError(const SoftMetalFixture::Copy& copy, MTL::CommandBufferError code) {
  NS::Error* const error = copy.commands->error();
  return copy.commands->status() == MTL::CommandBufferStatusError && error && error->code() == NS::Integer(code) &&
         std::string(error->domain()->utf8String()) == "MTLCommandBufferErrorDomain";
}

}  // namespace

TEST(SoftMetalFaults, FailTheCallThatIsAskedFor) {
  const SoftMetalFixture fixture;
  NS::Error* error = nullptr;
  const auto tries = [&](Call call, auto make) {
    const Context context(fmt::format("call {}", static_cast<int>(call)));
    faults().failAt(call, 1, 2);
    EXPECT(bool(make()));
    EXPECT(!make());
    EXPECT(!make());
    EXPECT(bool(make()));
  };
  tries(Call::buffer, [&] { return NS::TransferPtr(fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared)); });
  tries(Call::commandQueue, [&] { return NS::TransferPtr(fixture.device()->newCommandQueue()); });
  tries(Call::commandBuffer, [&] { return fixture.queue()->commandBuffer() != nullptr; });
  tries(Call::encoder, [&] {
    MTL::ComputeCommandEncoder* const encoder = fixture.queue()->commandBuffer()->computeCommandEncoder();
    // Not without the question: a call on null lets the compiler take the pointer for valid from there on.
    if (encoder) encoder->endEncoding();
    return encoder != nullptr;
  });
  const Folder folder;
  const std::string path = folder.path("library");
  softmetal::writeMetallib(path, {.linked = "conformance", .text = {}, .added = {}, .hidden = {}});
  tries(Call::library, [&] {
    error = nullptr;
    auto library = NS::TransferPtr(fixture.device()->newLibrary(text(path.c_str()), &error));
    EXPECT_EQ(bool(error), !library);
    return library;
  });
  tries(Call::function, [&] { return NS::TransferPtr(fixture.library()->newFunction(text("copy16"))); });
  const auto function = NS::TransferPtr(fixture.library()->newFunction(text("copy16")));
  tries(Call::pipeline, [&] {
    error = nullptr;
    auto pipeline = NS::TransferPtr(fixture.device()->newComputePipelineState(function.get(), &error));
    EXPECT_EQ(bool(error), !pipeline);
    return pipeline;
  });
}

TEST(SoftMetalFaults, FailCommandBuffersWithAnyCode) {
  const SoftMetalFixture fixture;
  for (const auto when : {softmetal::When::before, softmetal::When::after}) {
    for (const auto code : {MTL::CommandBufferErrorTimeout, MTL::CommandBufferErrorOutOfMemory,
                            MTL::CommandBufferErrorAccessRevoked, MTL::CommandBufferErrorStackOverflow}) {
      faults().failCommandBuffer(1, code, when);
      for (int i = 0; i < 3; ++i) {
        const auto copy = fixture.copy();
        static_cast<uint32_t*>(copy.from->contents())[0] = 5;
        copy.dispatch();
        copy.finish();
        const bool wasRun = static_cast<uint32_t*>(copy.to->contents())[0] == 5;
        EXPECT_EQ(isError(copy, code), i == 1);
        EXPECT_EQ(wasRun, i != 1 || when == softmetal::When::after);
      }
    }
  }
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalFaults, LoseTheDevice) {
  const SoftMetalFixture fixture;
  const auto before = fixture.copy();
  before.dispatch();
  before.encoder->endEncoding();
  const auto open = fixture.copy();
  const auto function = NS::TransferPtr(fixture.library()->newFunction(text("copy16")));
  faults().loseDevice();
  before.commands->commit();
  before.commands->waitUntilCompleted();
  EXPECT(isError(before, MTL::CommandBufferErrorDeviceRemoved));
  open.dispatch();
  open.finish();
  EXPECT(isError(open, MTL::CommandBufferErrorDeviceRemoved));
  MTL::CommandBuffer* const later = fixture.commandBuffer();
  later->commit();
  later->waitUntilCompleted();
  EXPECT_EQ(later->status(), MTL::CommandBufferStatusError);
  NS::Error* error = nullptr;
  EXPECT(fixture.device()->newBuffer(16, MTL::ResourceStorageModeShared) == nullptr);
  EXPECT(fixture.device()->newCommandQueue() == nullptr);
  EXPECT(fixture.device()->newComputePipelineState(function.get(), &error) == nullptr);
  EXPECT(fixture.library()->newFunction(text("copy16")) == nullptr);
  EXPECT(MTL::CreateSystemDefaultDevice() == nullptr);
  EXPECT_NO_VIOLATION();
}

TEST(SoftMetalFaults, HoldWork) {
  const SoftMetalFixture fixture;
  faults().holdWork();
  const auto copy = fixture.copy();
  static_cast<uint32_t*>(copy.from->contents())[0] = 5;
  copy.dispatch();
  copy.encoder->endEncoding();
  copy.commands->commit();
  softmetal::waitUntilIdle();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusCommitted);
  EXPECT(static_cast<uint32_t*>(copy.to->contents())[0] != 5);
  faults().releaseWork();
  copy.commands->waitUntilCompleted();
  EXPECT_EQ(static_cast<uint32_t*>(copy.to->contents())[0], 5u);
}

TEST(SoftMetalFaults, HoldHandlersUntilReleased) {
  const SoftMetalFixture fixture;
  faults().holdHandlers();
  std::atomic<int> calls = 0;
  for (int i = 0; i < 3; ++i) {
    MTL::CommandBuffer* const commands = fixture.commandBuffer();
    commands->addCompletedHandler([&](MTL::CommandBuffer*) { calls += 1; });
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->status(), MTL::CommandBufferStatusCompleted);
  }
  softmetal::waitUntilIdle();
  EXPECT_EQ(calls.load(), 0);
  EXPECT_EQ(faults().releaseHandlers(1), size_t(1));
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(faults().releaseHandlers(), size_t(2));
  EXPECT_EQ(calls.load(), 3);
}

TEST(SoftMetalFaults, DelayHandlers) {
  const SoftMetalFixture fixture;
  faults().delayHandlers(2);
  std::atomic<int> calls = 0;
  const auto commitOne = [&] {
    MTL::CommandBuffer* const commands = fixture.commandBuffer();
    commands->addCompletedHandler([&](MTL::CommandBuffer*) { calls += 1; });
    commands->commit();
    softmetal::waitUntilIdle();
  };
  commitOne();
  commitOne();
  EXPECT_EQ(calls.load(), 0);
  commitOne();
  EXPECT_EQ(calls.load(), 1);
  commitOne();
  EXPECT_EQ(calls.load(), 2);
  softmetal::reset();
  EXPECT_EQ(calls.load(), 4);
}

TEST(SoftMetalFaults, EndWithAReset) {
  const SoftMetalFixture fixture;
  faults().failAt(Call::buffer);
  faults().failCommandBuffer(0, MTL::CommandBufferErrorTimeout);
  faults().loseDevice();
  softmetal::machine().devices.clear();
  fixture.device()->newHeap(nullptr);
  softmetal::reset();
  EXPECT_NO_VIOLATION();
  const auto copy = fixture.copy();
  copy.dispatch();
  copy.finish();
  EXPECT_EQ(copy.commands->status(), MTL::CommandBufferStatusCompleted);
  EXPECT(NS::TransferPtr(MTL::CreateSystemDefaultDevice()).get() != nullptr);
}
