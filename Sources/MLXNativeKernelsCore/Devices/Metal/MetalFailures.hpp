// Converts a failed command buffer's error code to an Error that says whether a retry can help.
#pragma once
#include <string_view>

#include "Devices/Metal/MetalSupport.hpp"

namespace mnk::metal {

Error commandBufferError(const NS::Error* error, std::string_view label);

}  // namespace mnk::metal
