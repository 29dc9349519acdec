// The test kernels for x86-64 with AVX2.
#include "HostLevels.h"
#if MNK_HOST_HAS_AVX2
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_AVX2
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../Host/TestKernels.h"
MNK_HOST_KERNELS_END
#endif
