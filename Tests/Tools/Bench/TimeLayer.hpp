// What a layer of a decode step costs on the processor before anything runs: rotate, append, attend.
#pragma once
#include <cstdint>

#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench {

struct LayerCost {
  double seconds = 0;      // the median of some steps, for each layer
  double allocations = 0;  // in one step, for each layer
};
struct LayerCosts {
  LayerCost planned;   // every op is planned afresh
  LayerCost repeated;  // as callers encode them
  LayerCost replayed;  // as runs of a recorded step, submitted
  double dispatches = 0;
};

Result<LayerCosts> timeLayer(bool isQuantized, uint32_t steps);

}  // namespace mnk::bench
