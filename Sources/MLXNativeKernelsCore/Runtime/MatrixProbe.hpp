// Asks a device which elements of a simdgroup matrix its lanes hold, and waits for the answer.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"

namespace mnk {

Result<MatrixLayout> probeMatrixLayout(const std::shared_ptr<Device>& device);

}  // namespace mnk
