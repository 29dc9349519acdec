// The Host device: runs the kernels' .metal source, compiled as C++, on the processor's cores. The product
// MLXNativeKernelsHost defines it, which is linked by default on Linux.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/HostOptions.hpp"

namespace mnk::host {

// On Apple platforms the program must link the product MLXNativeKernelsHost and call mnk_register_host_device() of
// <MLXNativeKernelsHost/MLXNativeKernelsHost.h> first. Otherwise this fails with `unsupported` and names the product.
Result<std::shared_ptr<Device>> makeDevice(const HostOptions& options);

}  // namespace mnk::host
