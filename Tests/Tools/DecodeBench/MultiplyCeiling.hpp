// How fast a device can multiply: a kernel of the benchmark's own, compiled at run time, that does nothing but multiply
// 8x8 matrices of halves and sum the products in f32, as the attention of many rows does.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Dispatch.hpp"

namespace mnk::bench::decode {

// A plan of at least this many floating-point operations.
Result<Plan> planMultiplies(const std::shared_ptr<Device>& device, uint64_t operations);

}  // namespace mnk::bench::decode
