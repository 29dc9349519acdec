// The multiplication throughput of a device: a kernel, compiled at run time, that only multiplies 8x8 matrices of half
// and accumulates in f32, like attention with many rows.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench::decode {

// A plan with at least this many floating-point operations.
Result<Plan> planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations);

}  // namespace mnk::bench::decode
