// The shipped kernels for x86-64 with AVX-512.
#include "../HostLevels.h"
#include "ShippedKernels.hpp"
#if MNK_HOST_HAS_AVX512
#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_AVX512
#define MNK_HOST_WANTS(name) !::mnk::host::isGPUForm(name)
#include "../HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "KernelList.h"
MNK_HOST_KERNELS_END
#endif

const char mnk::host::kShippedAVX512 = 0;
