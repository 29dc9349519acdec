// Runs a dispatch on poisoned outputs and fails it if it changes a byte that it does not declare as written: in its
// bindings, close around them, or in the canaries of their buffers.
#pragma once
#include "DispatchRunner.hpp"

namespace mnk::host {

Result<void> runGuarded(const DispatchJob& job);

}  // namespace mnk::host
