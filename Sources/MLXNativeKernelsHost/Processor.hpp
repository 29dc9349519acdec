// The capabilities of this processor.
#pragma once
#include <string_view>

#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

// The best supported instruction set; never HostOptions::Level::best.
HostOptions::Level bestLevel();
std::string_view name(HostOptions::Level level);  // "AVX-512"
std::string_view architectureName();              // "x86-64"

}  // namespace mnk::host
