// The benchmark's kernels for x86-64 with AVX2.
#if defined(__x86_64__)
#define MNK_HOST_LIBRARY "bench"
#define MNK_HOST_LEVEL MNK_HOST_AVX2
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../../Shaders/RotaryTable.metal"
MNK_HOST_KERNELS_END
#endif
