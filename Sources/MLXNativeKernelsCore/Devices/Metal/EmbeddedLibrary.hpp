// The package's kernels, compiled from embedded text, for systems and builds without a compiled library. A kernel file
// is compiled when a pipeline first needs one of its functions, because compiling all of them at once is slow.
#pragma once
#include "Devices/Metal/MetalLibrary.hpp"

namespace mnk::metal {

// Compiles the smallest file to find out whether Metal 3.2 is available. `tried` lists, for errors, where else kernels
// were looked for, and `instead` is a compiled library that this one replaces. A compilation of more than a second is
// reported on stderr unless MNK_METAL_MESSAGES=0 is set.
Result<std::shared_ptr<MetalLibrary>> makeEmbeddedLibrary(MTL::Device* device, std::string label, std::string tried,
                                                          std::string instead);

}  // namespace mnk::metal
