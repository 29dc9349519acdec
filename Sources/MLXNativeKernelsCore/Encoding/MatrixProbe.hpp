// Asks a device which elements of a simdgroup matrix its lanes hold.
#pragma once
#include <memory>

#include "MLXNativeKernels/Device.hpp"

namespace mnk {

MatrixLayout probeMatrixLayout(const std::shared_ptr<Device>& device);

}  // namespace mnk
