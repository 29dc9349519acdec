// Options as a device uses them: completed from the environment and checked.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

Result<Options> resolve(const Options& options);

// Kernels must be compiled again, with other flags than the program's.
inline bool needsOwnModule(const Options& options) {
  return options.checking == Checking::full || options.perturb;
}

// " Order seed 7 replays it.", or nothing where the order is fixed.
std::string replayHint(const Options& options);

}  // namespace mnk::host
