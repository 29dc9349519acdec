// The kernels that this package ships, compiled into the program once per instruction set.
#pragma once
#include <string_view>

namespace mnk::host {

// Forms of attention that only GPUs choose. They run here when a caller asks for one, or tests what a GPU would run:
// not often enough to be compiled for every instruction set.
constexpr bool isGPUForm(std::string_view kernel) {
  return kernel.starts_with("flashDecodeMatrix_") ||
         (kernel.starts_with("flashDecodeVector_") && !kernel.ends_with("_fewLanes"));
}

void keepShippedBaseline();
void keepShippedAVX2();
void keepShippedAVX512();
void keepShippedGPUForms();

// Does nothing, but a linker that is given an archive keeps the files that it names.
inline void linkShippedKernels() {
  keepShippedBaseline();
  keepShippedAVX2();
  keepShippedAVX512();
  keepShippedGPUForms();
}

}  // namespace mnk::host
