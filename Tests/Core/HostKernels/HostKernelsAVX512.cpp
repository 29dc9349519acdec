// The test kernels for x86-64 with AVX512.
#include "HostLevels.h"
#if MNK_HOST_HAS_AVX512
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_AVX512
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../Host/TestKernels.h"
MNK_HOST_KERNELS_END
#endif
