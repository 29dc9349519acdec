// Compiles kernel text into a module of its own, with the program's C++ compiler.
#pragma once
#include "Devices/Host/HostLibrary.hpp"

namespace mnk::host {

Result<std::shared_ptr<HostLibrary>> compileLibrary(const LibrarySource& source, const Options& options);

// The library as a device with these options runs it: itself, or its text compiled again for checking.
Result<std::shared_ptr<HostLibrary>> libraryFor(const std::shared_ptr<HostLibrary>& library, const Options& options);

}  // namespace mnk::host
