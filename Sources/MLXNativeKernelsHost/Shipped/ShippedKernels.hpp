// The shipped kernels, compiled into the program once per instruction set.
#pragma once
#include <string_view>

namespace mnk::host {

// Kernels that only GPUs choose are excluded, because every program that links the Host device would pay for their
// compilation. Tests include them, to run the kernels that a GPU would run.
constexpr bool isGPUForm(std::string_view kernel) {
  return kernel.starts_with("flashDecodeMatrix_") || kernel.starts_with("flashPrefill_") ||
         kernel == "matrixLayoutProbe" || (kernel.starts_with("flashDecodeVector_") && !kernel.ends_with("_fewLanes"));
}

extern const char kShippedBaseline, kShippedAVX2, kShippedAVX512;

// Makes the linker keep these files of an archive.
[[gnu::used]] inline const char* const kShippedFiles[] = {&kShippedBaseline, &kShippedAVX2, &kShippedAVX512};

}  // namespace mnk::host
