// The C++ door: everything a C++ caller needs.
#pragma once
#include "MLXNativeKernels/AttentionCache.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Device.hpp"
#include "MLXNativeKernels/HeadsView.hpp"
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/KVCacheWrite.hpp"
#include "MLXNativeKernels/KernelRegistry.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"
#include "MLXNativeKernels/MultiRoPE.hpp"
#include "MLXNativeKernels/Result.hpp"
#include "MLXNativeKernels/Tensor.hpp"
