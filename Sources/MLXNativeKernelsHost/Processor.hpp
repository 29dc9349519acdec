// The capabilities of this processor.
#pragma once
#include <string_view>

#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

// The best supported instruction set; never Level::best.
Level bestLevel();
std::string_view name(Level level);   // "AVX-512"
std::string_view architectureName();  // "x86-64"

}  // namespace mnk::host
