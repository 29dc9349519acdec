// The test kernels for any processor.
#define MNK_HOST_LIBRARY "conformance"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "HostKernels.h"

MNK_HOST_KERNELS_BEGIN
#include "../../Shaders/BlockSums.metal"
#include "../../Shaders/CodeSearch.metal"
#include "../../Shaders/Conformance.metal"
#include "../../Shaders/ConformanceMatrix.metal"
#include "../../Shaders/ConformanceTypes.metal"
#include "../../Shaders/Faults.metal"
MNK_HOST_KERNELS_END
