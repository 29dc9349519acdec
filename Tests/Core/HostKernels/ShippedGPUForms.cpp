// The shipped kernels that only GPUs use, for the software Metal and for tests on the Host device.
#include "Shipped/ShippedKernels.hpp"

#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#define MNK_HOST_WANTS(name) ::mnk::host::isGPUForm(name)
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "Shipped/KernelList.h"
MNK_HOST_KERNELS_END
