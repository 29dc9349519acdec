// MultiRoPE on the Host device against memcpy of the same number of bytes and threads, and against a variant that reads
// cosines and sines from a table, in the same run.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

struct RotationSizes {
  uint32_t tokens;
  uint32_t heads = 40;  // of queries and keys together
  uint32_t headDim = 128;
};

// The minimum of interleaved runs.
struct RotationSeconds {
  uint64_t bytes = 0;  // read, and the same number written
  double kernel = 0;
  double table = 0;      // rotating with an existing table
  double makeTable = 0;  // computing the table
  double copy = 0;
};

Result<RotationSeconds> timeRotations(const host::Options& options, const RotationSizes& sizes, uint32_t repetitions);

}  // namespace mnk::bench
