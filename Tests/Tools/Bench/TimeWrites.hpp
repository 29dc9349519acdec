// KV-cache writes on the Host device against memcpy of the same number of bytes and threads, in the same run.
#pragma once
#include <string>
#include <vector>

#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

struct WriteSizes {
  DType source;
  DType cache;
  uint64_t tokens;
  uint64_t heads = 8;
  uint64_t headDim = 128;
  bool isFused = false;  // keys and values are columns of a projection, after four queries for each of them
};

struct WriteSeconds {
  uint64_t bytes = 0;  // stored, keys and values together
  double kernel = 0;   // the minimum of interleaved runs
  double copy = 0;
};

Result<WriteSeconds> timeWrites(const host::Options& options, const WriteSizes& sizes, uint32_t repetitions);

}  // namespace mnk::bench
