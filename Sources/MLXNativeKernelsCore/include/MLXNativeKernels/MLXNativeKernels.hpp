// The C++ API: everything a C++ caller needs.
#pragma once
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/Generated/Types.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"
#include "MLXNativeKernels/Prepare.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"
#include "MLXNativeKernels/mnk_version.h"
