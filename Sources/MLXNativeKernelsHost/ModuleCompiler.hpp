// Compiles kernel source into a separate module with a C++ compiler.
#pragma once
#include "HostLibrary.hpp"

namespace mnk::host {

Result<std::shared_ptr<HostLibrary>> compileLibrary(const LibrarySource& source, const HostOptions& options);

// The library with this function, as a device with these options runs it: the library itself, or the function's source
// recompiled for checking, without the library's other files, since compiling all of them takes half a minute. Returns
// the library itself if it has no such function.
Result<std::shared_ptr<HostLibrary>> libraryFor(const std::shared_ptr<HostLibrary>& library,
                                                const std::string& function, const HostOptions& options);

}  // namespace mnk::host
