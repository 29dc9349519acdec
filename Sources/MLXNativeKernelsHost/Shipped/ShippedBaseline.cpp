// The shipped kernels for any processor of this architecture.
#include "../HostLevels.h"
#include "ShippedKernels.hpp"

#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#define MNK_HOST_WANTS(name) !::mnk::host::isGPUForm(name)
#include "../HostKernels.h"

// If AVX2 kernels exist, only processors from before 2013 use these. Small code without debug information compiles in
// two thirds of the time.
#if MNK_HOST_HAS_AVX2
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))
#endif
MNK_HOST_KERNELS_BEGIN
#include "KernelList.h"
MNK_HOST_KERNELS_END
#if MNK_HOST_HAS_AVX2
#pragma clang attribute pop
#pragma clang attribute pop
#endif

const char mnk::host::kShippedBaseline = 0;
