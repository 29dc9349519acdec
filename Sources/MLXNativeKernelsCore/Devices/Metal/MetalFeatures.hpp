// The GPU features that kernels need, checked once when a device is created, and those that affect their speed.
#pragma once
#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

// The error names the first missing feature.
Result<void> checkFeatures(MTL::Device* device);

DeviceProfile profileOf(MTL::Device* device);

}  // namespace mnk::metal
