// Finds out whether a compiled library of this package's kernels was compiled with safe math. Build systems choose fast
// math by default, and Metal does not tell.
#pragma once
#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

// Runs a kernel of the library and waits for it. True also if it cannot run: then no work does.
bool hasSafeMath(MTL::Device* device, MetalLibrary& library);

}  // namespace mnk::metal
