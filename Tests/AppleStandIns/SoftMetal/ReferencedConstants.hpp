// Which function constants a kernel refers to, found in its text.
#pragma once
#include <span>
#include <string>

#include "HostLibrary.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace softmetal {

// The name of a constant that the function, or something it uses, refers to and that has no value; empty where there is
// none, or the text has no function whose name is the beginning of this one up to a "_".
std::string missingConstant(const std::string& text, const std::string& function, const mnk::host::HostLibrary& library,
                            std::span<const mnk::FunctionConstant> values);

}  // namespace softmetal
