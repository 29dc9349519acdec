// The kernels that this package ships, compiled into the program once per instruction set.
#pragma once
#include <string_view>

namespace mnk::host {

// Kernels that only GPUs choose: every program that links the Host device would pay for their compilation. Tests have
// them, because they run here what a GPU would run.
constexpr bool isGPUForm(std::string_view kernel) {
  return kernel.starts_with("flashDecodeMatrix_") || kernel.starts_with("flashPrefill_") ||
         kernel == "matrixLayoutProbe" || (kernel.starts_with("flashDecodeVector_") && !kernel.ends_with("_fewLanes"));
}

void keepShippedBaseline();
void keepShippedAVX2();
void keepShippedAVX512();

// Does nothing, but a linker that is given an archive keeps the files that it names.
inline void linkShippedKernels() {
  keepShippedBaseline();
  keepShippedAVX2();
  keepShippedAVX512();
}

}  // namespace mnk::host
