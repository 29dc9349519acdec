// What the kernels need of a GPU. Checked once, when a device is made.
#pragma once
#include "Devices/Metal/MetalSupport.hpp"

namespace mnk::metal {

// An error names the first feature that is missing.
Result<void> checkFeatures(MTL::Device* device);

}  // namespace mnk::metal
