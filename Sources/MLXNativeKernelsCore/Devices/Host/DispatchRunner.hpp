// Runs one dispatch to its end.
#pragma once
#include "Devices/Host/HostDevice.hpp"

namespace mnk::host {

// What the submission checks before it accepts a dispatch.
Result<void> checkDispatch(const ReadyDispatch& ready);
Result<void> runDispatch(const ReadyDispatch& ready, const Options& options);

}  // namespace mnk::host
