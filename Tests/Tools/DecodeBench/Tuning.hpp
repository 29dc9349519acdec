// Measures what `prepare` would choose on a device, and what that gains over the table.
#pragma once
#include <memory>
#include <vector>

#include "DecodeCase.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench::decode {

Result<void> tune(const std::shared_ptr<Device>& device, std::vector<DecodeCase> cases);

}  // namespace mnk::bench::decode
