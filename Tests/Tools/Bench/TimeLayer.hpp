// The CPU cost of encoding a layer of a decode step: rotate, append, attend.
#pragma once
#include <array>
#include <cstdint>

#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench {

struct LayerCost {
  double seconds = 0;      // the median of several steps, per layer
  double allocations = 0;  // in one step, per layer
  double dispatches = 0;
};
enum class LayerCall : uint8_t {
  planned,   // rotate, append and attend, each planned every time
  repeated,  // the same, as callers encode it
  oneCall,   // appendAndAttend with a rotary argument
  recorded,  // runs of a step recorded with oneCall, including submission
};
constexpr size_t kLayerCalls = 4;
const char* name(LayerCall call);
using LayerCosts = std::array<LayerCost, kLayerCalls>;

Result<LayerCosts> timeLayer(bool isQuantized, uint32_t steps);

}  // namespace mnk::bench
