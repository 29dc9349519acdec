// Measures what `prepare` would choose on a device, and the gain over the default table.
#pragma once
#include <memory>
#include <vector>

#include "DecodeCase.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench {

Result<void> tune(const std::shared_ptr<Device>& device, std::vector<DecodeCase> cases);

}  // namespace mnk::bench
