// How fast a device can read: a kernel of the benchmark's own, compiled at run time, that does nothing but sum a
// buffer. It shares the buffer out in two ways, because what suits a GPU does not suit a processor; the faster counts.
#pragma once
#include <memory>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench::decode {

// Plans that read at least so many bytes each, every one another part of the memory.
Result<std::vector<Plan>> planReads(const std::shared_ptr<Device>& device, uint64_t bytes, uint32_t copies);

}  // namespace mnk::bench::decode
