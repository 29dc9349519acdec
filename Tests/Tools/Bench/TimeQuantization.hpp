// Quantized KV-cache writes on the Host device against memcpy of the same keys and values, in the same run.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/KVCacheQuantize.hpp"

namespace mnk::bench {

struct QuantizationSizes {
  KVCodec codec;
  uint32_t candidates;
  uint64_t tokens;
  uint64_t heads = 8;
  uint64_t headDim = 128;
};

struct QuantizationSeconds {
  uint64_t vectors = 0;  // keys and values together
  uint64_t bytesRead = 0;
  uint64_t bytesStored = 0;
  double kernel = 0;  // the minimum of interleaved runs
  double copy = 0;
};

Result<QuantizationSeconds> timeQuantization(const host::Options& options, const QuantizationSizes& sizes,
                                             uint32_t repetitions);

}  // namespace mnk::bench
