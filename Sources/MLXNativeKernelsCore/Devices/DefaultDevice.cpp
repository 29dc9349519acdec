// The one place that knows which devices this platform has.
#include <mutex>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "Support/Guard.hpp"

namespace mnk {

Result<std::shared_ptr<Device>> Device::makeDefault() {
  static std::mutex mutex;
  static std::weak_ptr<Device> shared;
  return guarded("Device", [&]() -> Result<std::shared_ptr<Device>> {
    std::lock_guard lock(mutex);
    if (auto device = shared.lock()) return device;
    auto made = host::makeDevice({});
    if (made) shared = *made;
    return made;
  });
}

std::vector<std::shared_ptr<Device>> Device::all() {
  auto device = makeDefault();
  return device ? std::vector{*device} : std::vector<std::shared_ptr<Device>>{};
}

}  // namespace mnk
