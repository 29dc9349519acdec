// The shipped kernels for any processor of this architecture.
#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_BASELINE
#include "HostKernels.h"

namespace mnk {
namespace host {
void keepShippedBaseline() {}
}  // namespace host
}  // namespace mnk

MNK_HOST_KERNELS_BEGIN
#include "ShippedKernels.inc"
MNK_HOST_KERNELS_END
