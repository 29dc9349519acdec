// What the kernels need of a GPU, checked once when a device is made, and what their speed depends on.
#pragma once
#include "Devices/Metal/MetalSupport.hpp"
#include "MLXNativeKernels/Device.hpp"

namespace mnk::metal {

// An error names the first feature that is missing.
Result<void> checkFeatures(MTL::Device* device);

DeviceProfile profileOf(MTL::Device* device);

}  // namespace mnk::metal
