// The shipped kernels that only GPUs choose, for any processor of this architecture.
#include "../HostLevels.h"
#include "ShippedKernels.hpp"

#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#define MNK_HOST_WANTS(name) ::mnk::host::isGPUForm(name)
#include "../HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "KernelList.h"
MNK_HOST_KERNELS_END

void mnk::host::keepShippedGPUForms() {}
