// Compiles kernels that are given as text or as a file into a shared object, and loads it.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

// `options.level` is the instruction set to compile for.
Result<std::shared_ptr<Library>> compileLibrary(const LibrarySource& source, const Options& options);

}  // namespace mnk::host
