// A device's options, completed from the environment and checked, and what this processor can do.
#pragma once
#include <string_view>

#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

Result<HostOptions> resolve(const HostOptions& options);

// " Order seed 7 replays it.", or empty if the order is fixed.
std::string replayHint(const HostOptions& options);

// The best supported instruction set; never HostOptions::Level::best.
HostOptions::Level bestLevel();
std::string_view name(HostOptions::Level level);  // "AVX-512"
std::string_view architectureName();              // "x86-64"

}  // namespace mnk::host
