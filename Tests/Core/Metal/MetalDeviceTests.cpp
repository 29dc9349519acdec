#include "MetalFixture.hpp"

namespace mnk::test {

namespace {

softmetal::DeviceDescription& firstDevice() {
  return softmetal::machine().devices.at(0);
}

constexpr int64_t kApple6 = 1006, kMac2 = 2002, kMetal3 = 5001;

}  // namespace

TEST(MetalDevice, TellsWhatMetalTells) {
  MetalFixture fixture;
  firstDevice().name = "Soft M9";
  firstDevice().maxBufferLength = 1 << 30;
  firstDevice().maxThreadgroupMemoryLength = 64 * 1024;
  firstDevice().maxThreadsPerThreadgroup = {512, 512, 64};
  const auto device = fixture.makeDevice();
  EXPECT_EQ(device->kind(), "metal");
  EXPECT_EQ(device->name(), "Soft M9");
  EXPECT_EQ(device->limits().maxBufferBytes, uint64_t(1) << 30);
  EXPECT_EQ(device->limits().maxThreadgroupMemoryBytes, 64u * 1024);
  EXPECT_EQ(device->limits().maxThreadsPerThreadgroup, 512u);
  EXPECT_EQ(device->limits().maxInlineBytes, 4096u);
  EXPECT_EQ(device->limits().simdgroupWidth, 32u);
  // Apple's own GPUs are not probed.
  softmetal::clearCounters();
  REQUIRE(metal::makeDevice({}));
  EXPECT_EQ(softmetal::counters().compiles, 0u);
  EXPECT_EQ(softmetal::counters().pipelines, 0u);
}

TEST(MetalDevice, CountsCoresByTheRegistryOrTheNameOfTheChip) {
  MetalFixture fixture;
  constexpr std::pair<const char*, uint32_t> kChips[] = {
      {"Apple A14 GPU", 6}, {"Apple A17 Pro GPU", 6}, {"Apple M1", 10},       {"Apple M2 Pro", 20},
      {"Apple M3 Max", 40}, {"Apple M1 Ultra", 80},   {"AMD Radeon Pro", 20}, {"Intel Iris", 0}};
  for (const auto& [name, cores] : kChips) {
    const Context context(name);
    firstDevice().name = name;
    EXPECT_EQ(fixture.makeDevice()->profile().cores, cores);
  }
  softmetal::machine().gpuCoreCount = 38;
  EXPECT_EQ(fixture.makeDevice()->profile().cores, 38u);
}

TEST(MetalDevice, AGPUThatCannotRunTheKernelsIsATypedError) {
  MetalFixture fixture;
  setenv("MNK_SOFT_METAL_MACHINE", "paravirtual", 1);
  softmetal::reset();
  unsetenv("MNK_SOFT_METAL_MACHINE");
  EXPECT_ERROR(metal::makeDevice({}),
               {.code = ErrorCode::unsupported, .what = "lacks Metal 3", .got = "Apple Paravirtual device"});
  EXPECT(metal::allDevices().empty());
  softmetal::reset();
  firstDevice().families = {1001, kApple6};
  EXPECT_ERROR(metal::makeDevice({}), {.code = ErrorCode::unsupported,
                                       .what = "this GPU lacks Metal 3, which brings bfloat",
                                       .got = "Soft M1",
                                       .expected = "M1 or A14",
                                       .fix = "Host device"});
  firstDevice().families = {1001, kApple6, kMetal3};
  EXPECT_ERROR(metal::makeDevice({}),
               {.code = ErrorCode::unsupported, .what = "lacks the features of Apple7 or Mac2", .got = "Soft M1"});
  softmetal::machine().devices.clear();
  EXPECT_ERROR(metal::makeDevice({}), {.code = ErrorCode::unsupported,
                                       .op = "Metal device",
                                       .what = "no GPU that Metal can use",
                                       .got = "none",
                                       .expected = "a Metal device",
                                       .fix = "Host device"});
  EXPECT(metal::allDevices().empty());
}

TEST(MetalText, AnotherMakersGpuMustHaveSimdgroupsOf32) {
  MetalFixture fixture;
  firstDevice().families = {kMac2, kMetal3};
  EXPECT_EQ(REQUIRE(metal::makeDevice({}))->kind(), "metal");
  EXPECT(softmetal::counters().compiles == 1);
  firstDevice().threadExecutionWidth = 64;
  EXPECT_ERROR(metal::makeDevice({}),
               {.code = ErrorCode::unsupported, .what = "this GPU lacks simdgroups of 32 threads"});
  softmetal::faults().failAt(softmetal::Call::pipeline);
  EXPECT_ERROR(metal::makeDevice({}), {.code = ErrorCode::unsupported, .what = "makes no compute pipeline"});
  softmetal::faults().failAt(softmetal::Call::library);
  EXPECT_ERROR(metal::makeDevice({}), {.code = ErrorCode::shaderBuild, .what = "width probe"});
}

TEST(MetalDevice, UsesTheAppsDeviceAndQueue) {
  MetalFixture fixture;
  softmetal::machine().devices.push_back({.name = "Second", .families = firstDevice().families});
  const AutoreleasePool pool;
  const auto natives = NS::TransferPtr(MTL::CopyAllDevices());
  auto* first = natives->object<MTL::Device>(0);
  auto* second = natives->object<MTL::Device>(1);
  const auto queue = NS::TransferPtr(second->newCommandQueue());
  {
    const auto device = fixture.makeDevice({.device = second, .queue = queue.get()});
    EXPECT_EQ(device->name(), "Second");
    EXPECT(metal::nativeDevice(device) == second);
    EXPECT(metal::nativeQueue(device) == queue.get());
  }
  EXPECT_EQ(fixture.makeDevice({.device = second})->name(), "Second");
  EXPECT_EQ(fixture.makeDevice({.queue = queue.get()})->name(), "Second");
  EXPECT_ERROR(metal::makeDevice({.device = first, .queue = queue.get()}),
               {.what = "the queue belongs to another device",
                .got = "a queue of Second",
                .expected = "a queue of Soft M1",
                .fix = "Make the queue with the device"});
}

TEST(MetalDevice, AllListsEachGpuThatCanRunTheKernels) {
  MetalFixture fixture;
  softmetal::machine().devices.push_back({.name = "Old", .families = {kApple6}});
  softmetal::machine().devices.push_back({.name = "Other", .families = firstDevice().families});
  std::string names;
  for (const auto& device : metal::allDevices()) names += device->name() + ";";
  EXPECT_EQ(names, "Soft M1;Other;");
}

TEST(MetalDevice, AFailedQueueOrBufferIsATypedError) {
  MetalFixture fixture;
  for (const auto call : {softmetal::Call::commandQueue, softmetal::Call::buffer}) {
    softmetal::faults().failAt(call);
    const auto made = metal::makeDevice({});
    EXPECT_ERROR(made, {.code = ErrorCode::outOfMemory, .what = "no command queue or no memory"});
    EXPECT(!made && made.error().retryable);
  }
}

TEST(MetalDevice, ObjectsOfOtherDevicesAreRefused) {
  MetalFixture fixture;
  const auto metalDevice = fixture.makeDevice();
  const auto hostDevice = REQUIRE(host::makeDevice({}));
  EXPECT(metal::nativeDevice(hostDevice) == nullptr);
  EXPECT(metal::nativeQueue(hostDevice) == nullptr);
  EXPECT(metal::nativeBuffer(REQUIRE(hostDevice->makeBuffer(16))) == nullptr);
  EXPECT(metal::nativeBuffer(nullptr) == nullptr);
  EXPECT_ERROR(metal::wrapBuffer(hostDevice, nullptr), {.what = "Metal buffer", .got = "another kind of device"});
  EXPECT_ERROR(metal::makeSubmission(hostDevice, nullptr, ""), {.what = "command buffer"});

  const auto hostLibrary = REQUIRE(hostDevice->registry().shippedLibrary());
  softmetal::machine().devices.push_back({.name = "Second"});
  const auto otherLibrary = REQUIRE(metal::allDevices().at(1)->registry().library(
      {.kind = LibrarySource::Kind::path, .value = fixture.shippedLibrary(), .label = "second"}));
  for (const auto& library : {hostLibrary, otherLibrary}) {
    EXPECT_ERROR(metalDevice->registry().pipeline({.library = library, .function = "kvCacheMove_4"}),
                 {.op = "Metal device", .what = "the library is not of this device", .got = library->label()});
  }
  const CopyFixture copy(hostDevice);
  CommandEncoder encoder(metalDevice);
  EXPECT_ERROR(encoder.encode(copy.write), {.what = "a tensor belongs to another device"});
}

TEST(MetalDevice, MayBeDroppedWhileItWorks) {
  MetalFixture fixture;
  auto device = fixture.makeDevice();
  softmetal::faults().holdWork();
  const CopyFixture copy(device);
  const Completion done = submit(device, copy.write);
  device.reset();
  softmetal::faults().releaseWork();
  REQUIRE(done.wait());
  copy.expectCopied();
}

}  // namespace mnk::test
