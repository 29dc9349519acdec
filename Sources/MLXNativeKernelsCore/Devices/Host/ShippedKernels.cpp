#include "ShippedKernels.hpp"

namespace mnk::host {

void keepShippedBaseline();
void keepShippedAVX2();
void keepShippedAVX512();

void linkShippedKernels() {
  keepShippedBaseline();
#if defined(__x86_64__) && !defined(MNK_HOST_BASELINE_ONLY)
  keepShippedAVX2();
  keepShippedAVX512();
#endif
}

}  // namespace mnk::host
