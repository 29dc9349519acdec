#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalDevice, IsWhatTheMachineDescribes) {
  const SoftMetalFixture fixture;
  softmetal::DeviceDescription about;
  about.name = "Soft M9";
  about.families = {MTL::GPUFamilyApple9, MTL::GPUFamilyMetal3};
  about.maxBufferLength = 4096;
  about.maxThreadgroupMemoryLength = 1024;
  about.recommendedMaxWorkingSetSize = 77;
  about.hasUnifiedMemory = false;
  about.isLowPower = about.isHeadless = about.isRemovable = true;
  softmetal::machine().devices = {about};
  const auto device = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(device.get() != fixture.device());
  EXPECT_EQ(std::string(device->name()->utf8String()), "Soft M9");
  EXPECT(device->supportsFamily(MTL::GPUFamilyApple9));
  EXPECT(!device->supportsFamily(MTL::GPUFamilyApple8));
  EXPECT_EQ(device->maxBufferLength(), NS::UInteger(4096));
  EXPECT_EQ(device->maxThreadgroupMemoryLength(), NS::UInteger(1024));
  EXPECT_EQ(device->recommendedMaxWorkingSetSize(), uint64_t(77));
  EXPECT(!device->hasUnifiedMemory());
  EXPECT(device->lowPower() && device->headless() && device->removable());
}

TEST(SoftMetalDevice, IsOneObjectForAll) {
  const SoftMetalFixture fixture;
  const auto again = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  EXPECT(again.get() == fixture.device());
  const auto list = NS::TransferPtr(MTL::CopyAllDevices());
  EXPECT_EQ(list->count(), NS::UInteger(1));
  EXPECT(list->object<MTL::Device>(0) == fixture.device());
}

TEST(SoftMetalDevice, CanBeMany) {
  const SoftMetalFixture fixture;
  softmetal::machine().devices.push_back({.name = "Soft eGPU"});
  NS::Object* observer = nullptr;
  const auto list =
      NS::TransferPtr(MTL::CopyAllDevicesWithObserver(&observer, [](MTL::Device*, MTL::DeviceNotificationName) {}));
  EXPECT_EQ(list->count(), NS::UInteger(2));
  auto* const second = list->object<MTL::Device>(1);
  EXPECT_EQ(std::string(second->name()->utf8String()), "Soft eGPU");
  EXPECT(second->registryID() != fixture.device()->registryID());
  MTL::RemoveDeviceObserver(observer);
}

TEST(SoftMetalDevice, CanBeMissing) {
  const SoftMetalFixture fixture;
  softmetal::machine().devices.clear();
  EXPECT(MTL::CreateSystemDefaultDevice() == nullptr);
  EXPECT_EQ(NS::TransferPtr(MTL::CopyAllDevices())->count(), NS::UInteger(0));
}

TEST(SoftMetalBuffers, HoldGarbageWhenNew) {
  const SoftMetalFixture fixture;
  const auto buffer = fixture.buffer("new", 100);
  const auto* bytes = static_cast<const unsigned char*>(buffer->contents());
  for (size_t i = 0; i < 100; ++i) EXPECT(bytes[i] != 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, uintptr_t(0));
  EXPECT_EQ(fixture.device()->currentAllocatedSize(), NS::UInteger(100));
  EXPECT(fixture.buffer("gone", 10)->length() == 10);
  EXPECT_EQ(fixture.device()->currentAllocatedSize(), NS::UInteger(100));
}

TEST(SoftMetalBuffers, KnowTheirOptions) {
  const SoftMetalFixture fixture;
  const auto hidden = NS::TransferPtr(
      fixture.device()->newBuffer(64, MTL::ResourceStorageModePrivate | MTL::ResourceHazardTrackingModeUntracked));
  EXPECT(hidden->contents() == nullptr);
  EXPECT_VIOLATIONS("is private, and the processor asked for its contents");
  EXPECT(hidden->gpuAddress() != 0);
  EXPECT_EQ(hidden->storageMode(), MTL::StorageModePrivate);
  EXPECT_EQ(hidden->hazardTrackingMode(), MTL::HazardTrackingModeUntracked);
  EXPECT_EQ(hidden->resourceOptions(), MTL::ResourceOptions(256 + 32));
  EXPECT(hidden->device() == fixture.device());
  const auto shared = fixture.buffer("shared", 64);
  EXPECT_EQ(shared->storageMode(), MTL::StorageModeShared);
  EXPECT_EQ(shared->hazardTrackingMode(), MTL::HazardTrackingModeTracked);
}

TEST(SoftMetalBuffers, CopyBytes) {
  const SoftMetalFixture fixture;
  const char bytes[] = "sixteen bytes...";
  const auto buffer = NS::TransferPtr(fixture.device()->newBuffer(bytes, 16, MTL::ResourceStorageModeShared));
  EXPECT_EQ(std::memcmp(buffer->contents(), bytes, 16), 0);
  EXPECT(fixture.device()->newBuffer(static_cast<const void*>(nullptr), 16, MTL::ResourceStorageModeShared) == nullptr);
  EXPECT_VIOLATIONS("newBufferWithBytes: was given a null pointer");
}

TEST(SoftMetalBuffers, WrapPages) {
  const SoftMetalFixture fixture;
  const auto page = static_cast<size_t>(getpagesize());
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  __block int deallocations = 0;
  __block size_t lengths = 0;
  auto buffer = NS::TransferPtr(fixture.device()->newBuffer(memory, 2 * page, MTL::ResourceStorageModeShared,
                                                            ^(void* pointer, NS::UInteger length) {
                                                              deallocations += pointer == memory;
                                                              lengths += length;
                                                            }));
  EXPECT(buffer->contents() == memory);
  EXPECT_EQ(static_cast<char*>(memory)[5], 0);  // left as it is
  EXPECT_EQ(deallocations, 0);
  buffer.reset();
  EXPECT_EQ(deallocations, 1);
  EXPECT_EQ(lengths, 2 * page);
  EXPECT(fixture.device()->newBuffer(static_cast<char*>(memory) + 64, page, MTL::ResourceStorageModeShared, nullptr) ==
         nullptr);
  EXPECT_VIOLATIONS("expected the start of a page");
  EXPECT(fixture.device()->newBuffer(memory, page + 1, MTL::ResourceStorageModeShared, nullptr) == nullptr);
  EXPECT_VIOLATIONS("expected whole pages");
  EXPECT(fixture.device()->newBuffer(memory, page, MTL::ResourceStorageModePrivate, nullptr) == nullptr);
  EXPECT_VIOLATIONS("private storage");
  munmap(memory, 2 * page);
}

TEST(SoftMetalBuffers, RefuseImpossibleLengths) {
  const SoftMetalFixture fixture;
  EXPECT(fixture.device()->newBuffer(NS::UInteger(0), MTL::ResourceStorageModeShared) == nullptr);
  EXPECT_VIOLATIONS("a buffer of 0 bytes was asked for");
  EXPECT(fixture.device()->newBuffer(fixture.device()->maxBufferLength() + 1, MTL::ResourceStorageModeShared) ==
         nullptr);
  EXPECT_VIOLATIONS("bytes was asked for, expected 1 to 8589934592");
  EXPECT(NS::TransferPtr(fixture.device()->newBuffer(1, MTL::ResourceStorageModeShared)).get() != nullptr);
}

TEST(SoftMetalBuffers, TellOfWritesBehindTheirEnd) {
  const SoftMetalFixture fixture;
  auto buffer = fixture.buffer("short", 100);
  static_cast<char*>(buffer->contents())[100] = 1;
  buffer.reset();
  EXPECT_VIOLATIONS("MTLBuffer 'short' of 100 bytes was written behind its end");
}
