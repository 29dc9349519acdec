// The Host device: runs the kernels' .metal text, compiled as C++, on the processor's cores.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "MLXNativeKernels/Device.hpp"

namespace mnk::host {

enum class Level : int32_t { best = 0, baseline = 1, avx2 = 2, avx512 = 3 };

struct Options {
  uint32_t workers = 0;    // threads that run threadgroups; 0: one per core
  uint64_t orderSeed = 0;  // not 0: lanes, simdgroups and threadgroups run in this seeded random order
  bool poison = false;     // fill threadgroup memory with NaN before each threadgroup
  Level level = Level::best;
  std::string compiler;  // for kernels given as text; empty: clang++ of the search path
};

Result<std::shared_ptr<Device>> makeDevice(const Options& options);

// A library whose text was compiled into this program under the given label (HostKernels.h says how).
// Tests bring their kernels in this way.
Result<std::shared_ptr<Library>> linkedLibrary(std::string_view label);

}  // namespace mnk::host
