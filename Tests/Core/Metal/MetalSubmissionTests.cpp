#include <fmt/ranges.h>

#include "Devices/Metal/MetalSubmission.hpp"
#include "MetalFixture.hpp"

namespace mnk::test {

TEST(MetalSubmission, IsOneConcurrentEncoderWithBarriersWhereTheyAreNeeded) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  CopyFixture next(device);
  next.write.keys = copy.write.into.keys;
  const CopyFixture apart(device);
  CommandEncoder encoder(device, "step 7");
  REQUIRE(encoder.encode(copy.write));
  REQUIRE(encoder.encode(apart.write));
  REQUIRE(encoder.encode(next.write));
  const Summary summary = REQUIRE(REQUIRE(encoder.commit()).wait());
  EXPECT_EQ(summary.barriers, 1u);
  const std::string dispatch = "dispatch kvCacheMove_4 grid 1x1x4 group 1x1x4";
  EXPECT_EQ(traceText(), fmt::format("encoder 'step 7' concurrent; {0}; {0}; barrier; {0}", dispatch));
  const auto counters = softmetal::counters();
  EXPECT_EQ(counters.commandBuffers, 1u);
  EXPECT_EQ(counters.encoders, 1u);
  EXPECT_EQ(counters.inlineBytes, 3u * 120);
  EXPECT_EQ(fmt::format("{}", fmt::join(readTensor(next.out), " ")), "1 2 3 4");
  EXPECT(summary.deviceSeconds > 0);
}

// Work that is held runs as late as it can: without the fence, the software Metal reports the second step.
TEST(MetalSubmission, StepsOverUntrackedMemoryAreOrderedByAFence) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice({.describesDispatches = true});
  const AutoreleasePool pool;
  const Tensor between = makeUntracked(device);
  CopyFixture copy(device), next(device);
  copy.write.into.keys = between;
  next.write.keys = between;
  softmetal::faults().holdWork();
  CommandEncoder first(device), second(device);
  REQUIRE(first.encode(copy.write));
  REQUIRE(first.commit());
  REQUIRE(second.encode(next.write));
  const Completion done = REQUIRE(second.commit());
  softmetal::faults().releaseWork();
  REQUIRE(done.wait());
  EXPECT_EQ(fmt::format("{}", fmt::join(readTensor(next.out), " ")), "1 2 3 4");
  EXPECT_EQ(traceText(),
            "encoder 'MLXNativeKernels' concurrent; wait for fence; dispatch kvCacheMove_4 grid 1x1x4 "
            "group 1x1x4; update fence");

  const auto queue = NS::TransferPtr(metal::nativeDevice(device)->newCommandQueue());
  const auto elsewhere = NS::RetainPtr(queue->commandBuffer());
  CommandEncoder third(device, REQUIRE(metal::makeSubmission(device, elsewhere.get(), "elsewhere")));
  EXPECT_ERROR(third.encode(next.write), {.code = ErrorCode::unsupported,
                                          .what = "an untracked buffer is used in a command buffer of another queue"});
}

TEST(MetalSubmission, ThreadgroupsAndTheirMemoryReachMetal) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  Plan plan = REQUIRE(mnk::plan(copy.write));
  plan.dispatches.at(0).grid = {.unit = Grid::Unit::threadgroups, .extent = {1, 1, 2}, .threadgroup = {1, 1, 2}};
  plan.dispatches.at(0).threadgroupMemory = {{.index = 1, .bytes = 100}};
  REQUIRE(submit(device, plan).wait());
  EXPECT_EQ(traceText(), "encoder 'MLXNativeKernels' concurrent; dispatch kvCacheMove_4 groups 1x1x2 group 1x1x2");
  copy.expectCopied();
}

TEST(MetalSubmission, WithoutDispatchesIsDoneAtOnce) {
  MetalFixture fixture;
  CommandEncoder encoder(fixture.makeDevice());
  EXPECT_EQ(REQUIRE(REQUIRE(encoder.commit()).wait()).total.dispatches, 0u);
  EXPECT_EQ(softmetal::counters().encoders, 0u);
}

TEST(MetalSubmission, EmptyBindingsAreReplacedByMemoryThatNobodyTouches) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  // Keys without elements, values with one each.
  const Shape none = REQUIRE(Shape::make({1, 2, 0}));
  const Shape one = REQUIRE(Shape::make({1, 2, 1}));
  const Tensor values = makeTensor(device, {5, 6}), cache = makeTensor(device, {0, 0});
  KVCacheWrite write{
      .keys = REQUIRE(Tensor::zeros(device, DType::f32, none)),
      .values = REQUIRE(values.reshaped(one)),
      .sourceLayout = KVLayout::headMajor,
      .into = {.keys = REQUIRE(Tensor::zeros(device, DType::f32, none)), .values = REQUIRE(cache.reshaped(one))}};
  const auto expectWritten = [&] {
    REQUIRE(submit(device, write).wait());
    EXPECT(readTensor(cache) == (std::vector<float>{5, 6}));
  };
  expectWritten();
  // At the end of a buffer of the app's that is shorter than an element.
  const AutoreleasePool pool;
  const auto native = NS::TransferPtr(metal::nativeDevice(device)->newBuffer(2, MTL::ResourceStorageModeShared));
  write.keys = REQUIRE(Tensor::over(REQUIRE(metal::wrapBuffer(device, native.get())), DType::f32, none, 0));
  expectWritten();
}

TEST(MetalSubmission, DescribesItsDispatchesWhenAsked) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice({.describesDispatches = true});
  const CopyFixture copy(device);
  REQUIRE(submit(device, copy.write).wait());
  EXPECT_EQ(fmt::format("{}", fmt::join(softmetal::debugGroups(), "; ")),
            "KVCacheWrite kvCacheMove_4 binds 1:16 3:16 reads 1:0+16 writes 3:0+16");
  Dispatch dispatch;
  dispatch.kernel.function = "mine";
  EXPECT_EQ(metal::description(dispatch), "Custom mine");
  const Region rows{.offset = 64, .rowBytes = 8, .rowStride = 32, .rows = 3};
  dispatch.buffers = {{.index = 4, .length = 256, .reads = {rows, {.offset = 0, .rowBytes = 4}}, .writes = {rows}}};
  EXPECT_EQ(metal::description(dispatch), "Custom mine binds 4:256 reads 4:64+8*3@32 4:0+4 writes 4:64+8*3@32");
  dispatch.bytesRead = dispatch.bytesWritten = 8;
  EXPECT_EQ(metal::description(dispatch),
            "Custom mine binds 4:256 reads some 4:64+8*3@32 4:0+4 writes some 4:64+8*3@32");
}

TEST(MetalSubmission, IntoTheAppsCommandBufferNothingIsEncodedBeforeCommit) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  const AutoreleasePool pool;
  const auto native = appCommandBuffer(device);
  CommandEncoder encoder(device, REQUIRE(metal::makeSubmission(device, native.get(), "mine")));
  REQUIRE(encoder.encode(copy.write));
  EXPECT_EQ(softmetal::counters().encoders, 0u);
  const Completion done = REQUIRE(encoder.commit());
  EXPECT_EQ(softmetal::counters().encoders, 1u);
  EXPECT(!done.isDone());
  EXPECT_EQ(softmetal::counters().commandBuffers, 0u);
  copy.expectUntouched();
  // It may hold other work too.
  CopyFixture next(device);
  next.write.keys = copy.write.into.keys;
  commitInto(device, native.get(), next, "next");
  native->commit();
  EXPECT(REQUIRE(done.wait()).deviceSeconds > 0);
  copy.expectCopied();
  EXPECT(readTensor(next.out) == (std::vector<float>{1, 2, 3, 4}));
  const std::string dispatch = "concurrent; dispatch kvCacheMove_4 grid 1x1x4 group 1x1x4";
  EXPECT_EQ(traceText(), fmt::format("encoder 'mine' {0}; encoder 'next' {0}", dispatch));
}

TEST(MetalSubmission, AnAppsCommandBufferThatIsNeverCommittedFails) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  for (const bool callsHandlers : {false, true}) {
    softmetal::machine().callsHandlersOfDropped = callsHandlers;
    Completion done;
    {
      const AutoreleasePool pool;
      done = commitInto(device, appCommandBuffer(device).get(), copy, "lost");
    }
    EXPECT_ERROR(done.wait(), {.what = "the app's command buffer was released",
                               .got = "no commit of 'lost'",
                               .expected = "a command buffer that the app commits",
                               .fix = "Commit it after encoding."});
    copy.expectUntouched();
  }
}

TEST(MetalSubmission, AnAppsCommandBufferThatIsCommittedTooEarlyIsNotTouched) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  for (const bool isEmpty : {false, true}) {
    const AutoreleasePool pool;
    const auto native = appCommandBuffer(device);
    CommandEncoder encoder(device, REQUIRE(metal::makeSubmission(device, native.get(), "")));
    if (!isEmpty) REQUIRE(encoder.encode(copy.write));
    native->commit();
    native->waitUntilCompleted();
    EXPECT_ERROR(encoder.commit(), {.what = "the command buffer has been committed"});
    copy.expectUntouched();
  }
}

TEST(MetalSubmission, DescribesWhatIsNoText) {
  MetalFixture fixture;
  setenv("MNK_METAL_DESCRIBE", "1", 1);
  const auto device = fixture.makeDevice();
  unsetenv("MNK_METAL_DESCRIBE");
  const CopyFixture copy(device);
  Plan plan = REQUIRE(mnk::plan(copy.write));
  plan.dispatches.at(0).kind = "\xff";
  REQUIRE(submit(device, plan).wait());
  EXPECT_EQ(softmetal::debugGroups().at(0), "a name that is not UTF-8");
}

TEST(MetalSubmission, CommandBuffersThatCannotBeUsedAreRefused) {
  MetalFixture fixture;
  softmetal::machine().devices.push_back({.name = "Second"});
  const auto devices = metal::allDevices();
  const AutoreleasePool pool;
  const auto native = appCommandBuffer(devices.at(1));
  EXPECT_ERROR(metal::makeSubmission(devices.at(0), native.get(), ""),
               {.what = "the command buffer cannot be used", .got = "another device"});
  EXPECT_ERROR(metal::makeSubmission(devices.at(0), nullptr, ""), {.got = "no command buffer"});
  native->enqueue();
  REQUIRE(metal::makeSubmission(devices.at(1), native.get(), ""));
  native->commit();
  EXPECT_ERROR(metal::makeSubmission(devices.at(1), native.get(), ""),
               {.what = "has been committed", .fix = "Encode before the command buffer is committed."});
  native->waitUntilCompleted();
}

TEST(MetalSubmission, ObjectsOfAnotherDeviceAreRefused) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const auto hostDevice = REQUIRE(host::makeDevice({}));
  const auto submission = REQUIRE(device->makeSubmission(""));
  ReadyDispatch ready;
  ready.dispatch.kernel.function = "kvCacheMove_4";
  const auto expectRefused = [&] {
    EXPECT_ERROR(submission->dispatch(ready), {.what = "not of a Metal device", .got = "kvCacheMove_4"});
  };
  expectRefused();
  ready.pipeline =
      REQUIRE(hostDevice->registry().pipeline(REQUIRE(plan(CopyFixture(hostDevice).write)).dispatches[0].kernel));
  expectRefused();
  ready.pipeline = REQUIRE(device->registry().pipeline(REQUIRE(plan(CopyFixture(device).write)).dispatches[0].kernel));
  REQUIRE(submission->dispatch(ready));
  ready.dispatch.buffers = {{.index = 1, .buffer = REQUIRE(hostDevice->makeBuffer(16)), .length = 16}};
  expectRefused();
}

}  // namespace mnk::test
