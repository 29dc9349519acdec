// Why memory cannot be read or written.
#pragma once
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// Errors for memory that failed work should have written: when the CPU reads it, when a call that reads it is encoded,
// and when submitted work has already read it.
Error failedBytes(const Error& cause);
Error failedInput(const Error& cause);
Error failedDependence(const Error& cause);

Error notCommitted(bool toWrite);
// For bytes of a step that is encoded and not committed.
Error usedByOpenStep(bool toWrite);
// For work that would run before such a step.
Error runsBeforeOpenStep();
// For work whose error is unknown.
Error failedUnreported();

}  // namespace mnk
