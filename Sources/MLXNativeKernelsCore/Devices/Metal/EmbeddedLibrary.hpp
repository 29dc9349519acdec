// The kernels of this package from the text that the program carries, for systems and builds without a compiled
// library. A file of kernels is compiled when a pipeline first needs one of its functions, because all of them at once
// take the system's compiler long.
#pragma once
#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

// Compiles the smallest file, which shows whether there is Metal 3.2. `tried` says in errors where else kernels were
// looked for.
// Whenever a compilation has taken a second, a line on stderr says what the program is waiting for, unless the
// environment has MNK_METAL_MESSAGES=0.
Result<std::shared_ptr<MetalLibrary>> makeEmbeddedLibrary(MTL::Device* device, std::string label, std::string tried);

}  // namespace mnk::metal
