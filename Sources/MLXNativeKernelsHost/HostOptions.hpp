// A device's options, completed from the environment and checked.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

Result<HostOptions> resolve(const HostOptions& options);

// " Order seed 7 replays it.", or empty if the order is fixed.
std::string replayHint(const HostOptions& options);

}  // namespace mnk::host
