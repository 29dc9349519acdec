// The test kernels for x86-64 with AVX2.
#include "HostLevels.h"
#if MNK_HOST_HAS_AVX2
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_AVX2
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../../Shaders/BlockSums.metal"
#include "../../Shaders/CodeSearch.metal"
#include "../../Shaders/Conformance.metal"
#include "../../Shaders/ConformanceMatrix.metal"
#include "../../Shaders/ConformanceTypes.metal"
#include "../../Shaders/Faults.metal"
MNK_HOST_KERNELS_END
#endif
