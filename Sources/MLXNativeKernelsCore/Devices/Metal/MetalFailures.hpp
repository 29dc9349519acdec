// What a failed command buffer means: each of Metal's codes becomes an Error that says whether trying again can help.
#pragma once
#include <string_view>

#include "Devices/Metal/MetalSupport.hpp"

namespace mnk::metal {

Error commandBufferError(const NS::Error* error, std::string_view label);

}  // namespace mnk::metal
