// The only file that knows all devices. The default is Metal on Apple's systems, Host elsewhere, or the one that
// MNK_DEVICE names.
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "Devices/HostFactory.hpp"
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
  return invalidArgument("Device", "environment variable MNK_DEVICE names no device", kind, "host or metal",
                         "Correct the variable or remove it.");
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

namespace mnk::host {

namespace {

#if defined(__APPLE__)
constinit std::atomic<Factory> currentFactory{nullptr};  // null until the program registers the device
#else
constinit std::atomic<Factory> currentFactory{&makeLinkedDevice};
#endif

}  // namespace

Factory setFactory(Factory factory) noexcept {
  return currentFactory.exchange(factory);
}

Result<std::shared_ptr<Device>> makeDevice(const HostOptions& options) {
  constexpr std::string_view kName = "Host device";
  return guarded(kName, [&]() -> Result<std::shared_ptr<Device>> {
    if (const Factory factory = currentFactory.load()) return factory(options);
    return makeError(ErrorCode::unsupported, kName, "this program has not registered the Host device",
                     "MLXNativeKernels alone", "the product MLXNativeKernelsHost beside it",
                     "Link MLXNativeKernelsHost and call mnk_register_host_device(), in Swift registerHostDevice().");
  });
}

}  // namespace mnk::host

// A stub of the Metal device for systems without Metal, real or, in tests on Linux, software.
#if !defined(__APPLE__) && !defined(MNK_SOFT_METAL)

namespace mnk::metal {

namespace {

Error noMetal() {
  return makeError(ErrorCode::unsupported, "Metal device", "this system has no Metal", "a non-Apple platform",
                   "macOS or iOS", "Use the Host device here.");
}

}  // namespace

Result<std::shared_ptr<Device>> makeDevice(const Options&) {
  return noMetal();
}
std::vector<std::shared_ptr<Device>> allDevices() {
  return {};
}
Result<std::shared_ptr<Buffer>> wrapBuffer(const std::shared_ptr<Device>&, MTL::Buffer*) {
  return noMetal();
}
MTL::Buffer* nativeBuffer(const std::shared_ptr<Buffer>&) {
  return nullptr;
}
MTL::Device* nativeDevice(const std::shared_ptr<Device>&) {
  return nullptr;
}
MTL::CommandQueue* nativeQueue(const std::shared_ptr<Device>&) {
  return nullptr;
}
Result<std::unique_ptr<Submission>> makeSubmission(const std::shared_ptr<Device>&, MTL::CommandBuffer*,
                                                   std::string_view) {
  return noMetal();
}

}  // namespace mnk::metal

#endif
