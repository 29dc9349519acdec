// The shipped kernels for x86-64 with AVX-512.
#if defined(__x86_64__) && !defined(MNK_HOST_BASELINE_ONLY)
#define MNK_HOST_LIBRARY "MLXNativeKernels"
#define MNK_HOST_LEVEL MNK_HOST_AVX512
#include "HostKernels.h"

namespace mnk {
namespace host {
void keepShippedAVX512() {}
}  // namespace host
}  // namespace mnk

MNK_HOST_KERNELS_BEGIN
#include "ShippedKernels.inc"
MNK_HOST_KERNELS_END
#endif
