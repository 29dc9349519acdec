#include "Support/EveryDevice.hpp"

#include <cstdlib>

#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"

namespace mnk::test {

namespace {

std::vector<DeviceUnderTest> makeDevices() {
  // Where the environment says how kernels are checked, it says so for all devices: one of each kind is enough.
  const bool hasOneOfEachKind = std::getenv("MNK_HOST_CHECKING") != nullptr;
  std::vector<DeviceUnderTest> devices;
  for (const auto& device : Device::all()) {
    if (hasOneOfEachKind && device->kind() == "metal") continue;
    devices.push_back({std::string(device->kind()), device});
  }
  // Described dispatches let a capture, or the software Metal, see which bytes each one declares.
  if (auto described = metal::makeDevice({.libraryPath = {}, .describesDispatches = true})) {
    devices.push_back({"metal with described dispatches", std::move(*described)});
  }
  if (hasOneOfEachKind) return devices;
  const auto addHost = [&](std::string name, const host::Options& options) {
    devices.push_back({std::move(name), REQUIRE(host::makeDevice(options))});
  };
  for (uint64_t seed : {1, 2, 3}) {
    addHost(fmt::format("host in random order {}", seed),
            {.orderSeed = seed, .checking = host::Checking::guarded, .compiler = {}});
  }
  addHost("host with one baseline worker", {.workers = 1, .level = host::Level::baseline, .compiler = {}});
  return devices;
}

}  // namespace

const std::vector<DeviceUnderTest>& devicesUnderTest() {
  // Never destroyed: at exit, a device would wait for threads that the process has already stopped.
  static const auto* devices = new std::vector<DeviceUnderTest>(makeDevices());
  return *devices;
}

}  // namespace mnk::test
