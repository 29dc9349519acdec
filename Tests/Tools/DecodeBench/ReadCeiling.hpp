// The read bandwidth of a device: a kernel, compiled at run time, that only sums a buffer. It divides the buffer in two
// ways, one for GPUs and one for CPUs; the faster counts.
#pragma once
#include <memory>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench::decode {

// Plans that each read at least this many bytes, of different parts of the memory.
Result<std::vector<Plan>> planReads(const std::shared_ptr<Device>& device, uint64_t bytes, uint32_t copies);

}  // namespace mnk::bench::decode
