#include "SoftDevice.hpp"

#include <algorithm>
#include <mutex>

#include "CommandQueue.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace softmetal {

namespace {

// As on a Mac, all callers share a live device.
struct Devices {
  std::mutex mutex;
  std::vector<SoftDevice*> alive;
};

Devices& devices() {
  static auto& all = *new Devices;
  return all;
}

bool retainIfAlive(SoftDevice* device) {
  int64_t count = device->references;
  while (count > 0) {
    if (device->references.compare_exchange_weak(count, count + 1)) return true;
  }
  return false;
}

}  // namespace

SoftDevice* SoftDevice::get(size_t number) {
  if (number >= machine().devices.size() || isDeviceLost()) return nullptr;
  const DeviceDescription& about = machine().devices[number];
  std::lock_guard lock(devices().mutex);
  for (SoftDevice* device : devices().alive) {
    if (device->number == number && device->about == about && retainIfAlive(device)) return device;
  }
  auto host = mnk::host::makeDevice({});
  if (!host) return violate("no Host device for {}: {}", about.name, host.error().message());
  auto* device = make<SoftDevice>();
  device->setLabelText(about.name);
  device->about = about;
  device->number = number;
  device->host = std::move(*host);
  devices().alive.push_back(device);
  return device;
}

void SoftDevice::finish() {
  {
    std::lock_guard lock(devices().mutex);
    std::erase(devices().alive, this);
  }
  host.reset();
}

bool SoftDevice::supports(int64_t family) const {
  return std::find(about.families.begin(), about.families.end(), family) != about.families.end();
}

MTL::Size SoftDevice::maxThreadsPerThreadgroup() {
  const auto& most = about.maxThreadsPerThreadgroup;
  return MTL::Size(most[0], most[1], most[2]);
}

SoftCommandQueue* SoftDevice::newCommandQueue() {
  if (shallFail(Call::commandQueue)) return nullptr;
  auto* queue = make<SoftCommandQueue>();
  queue->owner = Ref<SoftDevice>(this);
  return queue;
}

void defineDevice() {
  define<SoftDevice>("MTLDevice")
      .on<&SoftDevice::name>("name")
      .on<&SoftDevice::registryID>("registryID")
      .on<&SoftDevice::supportsFamily>("supportsFamily:")
      .on<&SoftDevice::maxBufferLength>("maxBufferLength")
      .on<&SoftDevice::maxThreadgroupMemoryLength>("maxThreadgroupMemoryLength")
      .on<&SoftDevice::maxThreadsPerThreadgroup>("maxThreadsPerThreadgroup")
      .on<&SoftDevice::newBuffer>("newBufferWithLength:options:")
      .on<&SoftDevice::newBufferWithBytes>("newBufferWithBytes:length:options:")
      .on<&SoftDevice::newBufferNoCopy>("newBufferWithBytesNoCopy:length:options:deallocator:")
      .on<&SoftDevice::counterSets>("counterSets")
      .on<&SoftDevice::supportsCounterSampling>("supportsCounterSampling:")
      .on<&SoftDevice::sampleTimestamps>("sampleTimestamps:gpuTimestamp:")
      .on<&SoftDevice::newSamples>("newCounterSampleBufferWithDescriptor:error:")
      .on<&SoftDevice::newFence>("newFence")
      .on<&SoftDevice::newCommandQueue>("newCommandQueue")
      .on<&SoftDevice::newLibraryWithURL>("newLibraryWithURL:error:")
      .on<&SoftDevice::newLibraryWithSource>("newLibraryWithSource:options:error:")
      .on<&SoftDevice::newPipeline>("newComputePipelineStateWithFunction:error:")
      .on<&SoftDevice::newPipelineDescribed>("newComputePipelineStateWithDescriptor:options:reflection:error:");
}

}  // namespace softmetal

using namespace softmetal;

extern "C" {

SoftDevice* MTLCreateSystemDefaultDevice() {
  const At inside(Place::inside);
  setLastMessage("MTLCreateSystemDefaultDevice");
  return SoftDevice::get(0);
}

SoftArray* MTLCopyAllDevices() {
  const At inside(Place::inside);
  setLastMessage("MTLCopyAllDevices");
  std::vector<Ref<Object>> found;
  for (size_t i = 0; i < machine().devices.size(); ++i) {
    if (SoftDevice* device = SoftDevice::get(i)) found.push_back(Ref<Object>::adopt(device));
  }
  return makeArray(std::move(found));
}

// metal-cpp refers to these; nothing calls them.
void MTLCopyAllDevicesWithObserver() {}
void MTLRemoveDeviceObserver() {}
}
