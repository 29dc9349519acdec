// Compiles kernel text into a module of its own, with the program's C++ compiler.
#pragma once
#include "HostLibrary.hpp"

namespace mnk::host {

Result<std::shared_ptr<HostLibrary>> compileLibrary(const LibrarySource& source, const Options& options);

// What has this function of the library as a device with these options runs it: the library itself, or the function's
// text compiled again for checking, without the library's other files. All that ships would take half a minute. It is
// the library itself, too, where that has no such function.
Result<std::shared_ptr<HostLibrary>> libraryFor(const std::shared_ptr<HostLibrary>& library,
                                                const std::string& function, const Options& options);

}  // namespace mnk::host
