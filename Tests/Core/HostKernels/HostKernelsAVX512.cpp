// The test kernels for x86-64 with AVX512.
#include "HostLevels.h"
#if MNK_HOST_HAS_AVX512
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_AVX512
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
