// How the core makes a device that another target defines.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

using Factory = Result<std::shared_ptr<Device>> (*)(const Options&);

// The Host device's own factory, in MLXNativeKernelsHost.
Result<std::shared_ptr<Device>> makeLinkedDevice(const Options& options);

// What makeDevice calls from now on; null: it fails. Returns what it called before.
Factory setFactory(Factory factory) noexcept;

}  // namespace mnk::host
