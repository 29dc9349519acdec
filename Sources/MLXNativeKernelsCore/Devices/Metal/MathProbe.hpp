// Finds out whether a compiled library of this package's kernels was compiled with safe math. Build systems choose fast
// math by default, and Metal does not report it.
#pragma once
#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

// Runs a kernel of the library and waits for it. An error if it cannot run, such as in the background.
Result<bool> hasSafeMath(MTL::Device* device, MetalLibrary& library);

}  // namespace mnk::metal
