// Finds the function constants that a kernel references in its source.
#pragma once
#include <span>
#include <string>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace softmetal {

// The name of a constant without a value that the function references, directly or indirectly; empty if there is none,
// or if the source has no function whose name is a prefix of this one up to a "_".
std::string missingConstant(const std::string& text, const std::string& function, const mnk::host::HostLibrary& library,
                            std::span<const mnk::FunctionConstant> values);

}  // namespace softmetal
