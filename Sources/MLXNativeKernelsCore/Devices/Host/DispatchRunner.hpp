// Runs one dispatch, whose pipeline is of a Host device, to its end.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

Result<void> runDispatch(const ReadyDispatch& ready, const Options& options);

}  // namespace mnk::host
