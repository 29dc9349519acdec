// Buffers: what the validation layer of Metal reports. MetalDevice and MetalBuffer have the rest.
#include <unistd.h>

#include <cstdlib>

#include "SoftMetal/SoftMetalFixture.hpp"

using namespace mnk::test;

TEST(SoftMetalDevice, IsWhatTheMachineDescribes) {
  const SoftMetalFixture fixture;
  MTL::Device* const first = fixture.device();
  EXPECT(NS::TransferPtr(MTL::CreateSystemDefaultDevice()).get() == first);
  softmetal::machine().devices.push_back({.name = "Soft eGPU", .hasUnifiedMemory = false, .isLowPower = true});
  NS::Object* observer = nullptr;
  const auto list =
      NS::TransferPtr(MTL::CopyAllDevicesWithObserver(&observer, [](MTL::Device*, MTL::DeviceNotificationName) {}));
  auto* const device = list->object<MTL::Device>(1);
  EXPECT(list->count() == 2 && utf8(device->name()) == "Soft eGPU" && device->registryID() != first->registryID());
  EXPECT(!device->hasUnifiedMemory() && device->lowPower() && !device->headless() && !device->removable());
  MTL::RemoveDeviceObserver(observer);
}

TEST(SoftMetalBuffers, HaveRules) {
  const SoftMetalFixture fixture;
  MTL::Device* const device = fixture.device();
  auto buffer = fixture.buffer("new", 100);
  auto* bytes = static_cast<unsigned char*>(buffer->contents());
  for (size_t i = 0; i < 100; ++i) EXPECT(bytes[i] != 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 4096, uintptr_t(0));
  EXPECT(device->currentAllocatedSize() == 100 && fixture.buffer("gone", 10)->length() == 10);
  EXPECT_EQ(device->currentAllocatedSize(), NS::UInteger(100));
  bytes[100] = 1;
  buffer.reset();
  const auto hidden = NS::TransferPtr(
      device->newBuffer(64, MTL::ResourceStorageModePrivate | MTL::ResourceHazardTrackingModeUntracked));
  EXPECT(hidden->contents() == nullptr && hidden->gpuAddress() != 0 && hidden->device() == device);
  EXPECT_EQ(hidden->hazardTrackingMode(), MTL::HazardTrackingModeUntracked);
  EXPECT_EQ(hidden->resourceOptions(), MTL::ResourceOptions(256 + 32));
  EXPECT_EQ(fixture.buffer("shared", 64)->hazardTrackingMode(), MTL::HazardTrackingModeTracked);
  constexpr auto kShared = MTL::ResourceStorageModeShared;
  const auto copied = NS::TransferPtr(device->newBuffer("sixteen bytes...", 16, kShared));
  EXPECT_EQ(std::string(static_cast<char*>(copied->contents()), 16), "sixteen bytes...");
  EXPECT(device->newBuffer(static_cast<const void*>(nullptr), 16, kShared) == nullptr);
  EXPECT(device->newBuffer(NS::UInteger(0), kShared) == nullptr);
  EXPECT(device->newBuffer(device->maxBufferLength() + 1, kShared) == nullptr);
}

TEST(SoftMetalBuffers, WrapPagesAlone) {
  const SoftMetalFixture fixture;
  const auto page = static_cast<size_t>(getpagesize());
  const std::unique_ptr<void, decltype(&free)> memory(aligned_alloc(page, 2 * page), free);
  const auto wrap = [&](size_t offset, size_t length, MTL::ResourceOptions options) {
    return fixture.device()->newBuffer(static_cast<char*>(memory.get()) + offset, length, options, nullptr);
  };
  EXPECT(!wrap(64, page, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected the start of a page");
  EXPECT(!wrap(0, page + 1, MTL::ResourceStorageModeShared));
  EXPECT_VIOLATIONS("expected whole pages");
  EXPECT(!wrap(0, page, MTL::ResourceStorageModePrivate));
}
