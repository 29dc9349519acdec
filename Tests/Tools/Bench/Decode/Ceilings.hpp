// What a device can do at most, measured with kernels that are compiled at run time.
#pragma once
#include <memory>
#include <vector>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench {

// Plans that each read at least this many bytes, of different parts of the memory, and only sum them. Of two divisions
// of the memory, one for GPUs and one for CPUs, it is the faster.
std::vector<Plan> planReads(const std::shared_ptr<Device>& device, uint64_t bytes, uint32_t copies);
// A plan with at least this many floating-point operations: it only multiplies 8x8 matrices of half and accumulates in
// f32, like attention with many rows.
Plan planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations);

}  // namespace mnk::bench
