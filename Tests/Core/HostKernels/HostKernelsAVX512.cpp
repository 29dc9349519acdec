// The test kernels for x86-64 with AVX512.
#if defined(__x86_64__) && !defined(MNK_HOST_BASELINE_ONLY)
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_AVX512
#include "Devices/Host/HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../Shaders/BlockSums.metal"
#include "../Shaders/CodeSearch.metal"
#include "../Shaders/Conformance.metal"
#include "../Shaders/ConformanceMatrix.metal"
#include "../Shaders/ConformanceTypes.metal"
#include "../Shaders/Faults.metal"
#include "../Shaders/RotaryTable.metal"
MNK_HOST_KERNELS_END
#endif
