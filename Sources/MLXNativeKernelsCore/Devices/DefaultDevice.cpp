// The only file that knows all devices. The default is Metal on Apple's systems, Host elsewhere, or the one that
// MNK_DEVICE names.
#include <cstdlib>
#include <mutex>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

#if defined(__APPLE__)
constexpr std::string_view kBest = "metal";
#else
constexpr std::string_view kBest = "host";
#endif

Result<std::shared_ptr<Device>> makeNamed(std::string_view kind) {
  if (kind == "host") return host::makeDevice({});
  if (kind == "metal") return metal::makeDevice({});
  return Error{.op = "Device",
               .what = "environment variable MNK_DEVICE names no device",
               .got = std::string(kind),
               .expected = "host or metal",
               .fix = "Correct the variable or remove it."};
}

std::string_view chosen() {
  const char* value = std::getenv("MNK_DEVICE");
  return value && *value ? value : kBest;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::makeDefault() {
  static std::mutex mutex;
  static std::weak_ptr<Device> shared;
  return guarded("Device", [&]() -> Result<std::shared_ptr<Device>> {
    std::lock_guard lock(mutex);
    if (auto device = shared.lock()) return device;
    auto result = makeNamed(chosen());
    if (result) shared = *result;
    return result;
  });
}

std::vector<std::shared_ptr<Device>> Device::all() {
  std::vector<std::shared_ptr<Device>> devices;
  const auto first = makeDefault();
  if (first) devices.push_back(*first);
  for (auto& device : metal::allDevices()) {
    if (!first || metal::nativeDevice(device) != metal::nativeDevice(*first)) devices.push_back(std::move(device));
  }
  if (!first || (*first)->kind() != "host") {
    if (auto host = host::makeDevice({})) devices.push_back(std::move(*host));
  }
  return devices;
}

}  // namespace mnk
