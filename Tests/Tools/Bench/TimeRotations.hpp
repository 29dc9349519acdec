// MultiRoPE on the Host device against memcpy of as many bytes, by as many threads, and against the form that reads its
// cosines and sines from a table, in the same run.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

struct RotationSizes {
  uint32_t tokens;
  uint32_t heads = 40;  // of queries and keys together
  uint32_t headDim = 128;
};

// The least of interleaved runs.
struct RotationSeconds {
  uint64_t bytes = 0;  // read, and as many written
  double kernel = 0;
  double table = 0;      // rotating by a table that is there
  double makeTable = 0;  // and what it takes to make it
  double copy = 0;
};

Result<RotationSeconds> timeRotations(const host::Options& options, const RotationSizes& sizes, uint32_t repetitions);

}  // namespace mnk::bench
