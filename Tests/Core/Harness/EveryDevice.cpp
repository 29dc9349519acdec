#include "Harness/EveryDevice.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "CoreTests.h"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"

namespace mnk::test {

namespace {

bool environmentAsksForChecks() {
  const char* value = std::getenv("MNK_HOST_CHECKING");
  return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "off";
}

std::vector<DeviceUnderTest> makeDevices() {
  std::vector<DeviceUnderTest> devices;
  const auto addHost = [&](std::string name, const HostOptions& options, bool hasOwnKernels) {
    devices.push_back({std::move(name), REQUIRE(host::makeDevice(options)), hasOwnKernels});
  };
  // Described dispatches show a capture, or the software Metal, which bytes each one declares.
  const auto addDescribedMetal = [&](std::string name, bool hasOwnKernels) {
    if (auto described = metal::makeDevice({.libraryPath = {}, .describesDispatches = true})) {
      devices.push_back({std::move(name), std::move(*described), hasOwnKernels});
    }
  };
  if (environmentAsksForChecks()) {
    addHost("host", {.compiler = {}}, true);
    addHost("host with the kernels of a GPU", {.compiler = {}, .family = "apple9"}, false);
    addDescribedMetal("metal", true);
    return devices;
  }
  for (const auto& device : Device::all()) devices.push_back({std::string(device->kind()), device});
  addDescribedMetal("metal with described dispatches", false);
  // With the kernels of a processor, of an Apple GPU, and of an unknown GPU.
  uint64_t seed = 0;
  for (const char* family : {"host", "apple9", "other"}) {
    ++seed;
    addHost(fmt::format("host in random order {}, as {}", seed, family),
            {.orderSeed = seed, .checking = HostOptions::Checking::guarded, .compiler = {}, .family = family}, false);
  }
  addHost("host with one baseline worker", {.workers = 1, .level = HostOptions::Level::baseline, .compiler = {}}, true);
  return devices;
}

}  // namespace

const std::vector<DeviceUnderTest>& devicesUnderTest() {
  // Never destroyed: at exit, a device would wait for threads that the process has already stopped.
  static const auto* devices = new std::vector<DeviceUnderTest>(makeDevices());
  return *devices;
}

}  // namespace mnk::test

void core_test_choose_device(void) {
  const auto device = mnk::Device::makeDefault();
  if (device || device.error().code != mnk::ErrorCode::unsupported) return;
  std::printf("tests run on the Host device: %s\n", device.error().message().c_str());
  std::fflush(stdout);
  setenv("MNK_DEVICE", "host", 1);
}
