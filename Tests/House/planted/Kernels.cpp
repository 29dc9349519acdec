// Kernels with deliberate mistakes, as a library of their own: no test may run them by chance.
#define MNK_HOST_LIBRARY "planted"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "Devices/Host/HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../../Shaders/MemoryFaults.metal"
MNK_HOST_KERNELS_END
