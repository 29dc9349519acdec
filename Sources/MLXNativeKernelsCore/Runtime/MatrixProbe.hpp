// Probes which elements of a simdgroup matrix each lane holds, and waits for the result.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"

namespace mnk {

Result<MatrixLayout> probeMatrixLayout(const std::shared_ptr<Device>& device);

}  // namespace mnk
