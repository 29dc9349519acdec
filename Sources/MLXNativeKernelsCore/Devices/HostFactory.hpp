// Lets the core create a device that another target defines.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

using Factory = Result<std::shared_ptr<Device>> (*)(const HostOptions&);

// The Host device's factory, in MLXNativeKernelsHost.
Result<std::shared_ptr<Device>> makeLinkedDevice(const HostOptions& options);

// Sets what makeDevice calls and returns the previous factory. With null, makeDevice fails.
Factory setFactory(Factory factory) noexcept;

}  // namespace mnk::host
