// Why memory cannot be read or written.
#pragma once
#include "MLXNativeKernels/Result.hpp"

namespace mnk {

// Work that was to write it has failed: memory that the processor reads, that is encoded to be read, and that work has
// read already.
Error failedBytes(const Error& cause);
Error failedInput(const Error& cause);
Error failedDependence(const Error& cause);

Error notCommitted(bool toWrite);
// Of work whose error is not known.
Error failedUnreported();

}  // namespace mnk
