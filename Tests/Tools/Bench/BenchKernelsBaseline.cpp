// The benchmark's kernels for any processor.
#define MNK_HOST_LIBRARY "bench"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../../Shaders/RotaryTable.metal"
MNK_HOST_KERNELS_END
