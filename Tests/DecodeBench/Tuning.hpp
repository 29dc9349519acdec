// Measures what a device's row of FlashDecode's tuning table chooses among, and prints that row.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench::decode {

Result<void> tune(const std::shared_ptr<Device>& device);

}  // namespace mnk::bench::decode
