// Runs one dispatch, whose pipeline is of a Host device, to its end. An error names the submission's label.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::host {

Result<void> runDispatch(const ReadyDispatch& ready, const Options& options, std::string_view label);

}  // namespace mnk::host
