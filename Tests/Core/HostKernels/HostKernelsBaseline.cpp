// The test kernels for any processor.
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../Host/TestKernels.h"
MNK_HOST_KERNELS_END
