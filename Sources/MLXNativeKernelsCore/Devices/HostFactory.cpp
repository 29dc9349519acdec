#include "Devices/HostFactory.hpp"

#include <atomic>

#include "Support/Errors.hpp"

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
    return Error{
        .code = ErrorCode::unsupported,
        .op = std::string(kName),
        .what = "this program has not registered the Host device",
        .got = "MLXNativeKernels alone",
        .expected = "the product MLXNativeKernelsHost beside it",
        .fix = "Link MLXNativeKernelsHost and call mnk_register_host_device(), in Swift registerHostDevice()."};
  });
}

}  // namespace mnk::host
