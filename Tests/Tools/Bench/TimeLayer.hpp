// What a layer of a decode step costs on the processor before anything runs: rotate, append, attend.
#pragma once
#include <array>
#include <cstdint>

#include "MLXNativeKernels/Result.hpp"

namespace mnk::bench {

struct LayerCost {
  double seconds = 0;      // the median of some steps, for each layer
  double allocations = 0;  // in one step, for each layer
  double dispatches = 0;
};
// The ways to encode a layer.
enum class LayerCall : uint8_t {
  planned,   // rotate, append, attend, each planned afresh
  repeated,  // the same as callers encode it
  oneCall,   // appendAndAttend with a rotary argument
  recorded,  // runs of a step that was recorded so, submitting included
};
constexpr size_t kLayerCalls = 4;
const char* name(LayerCall call);
using LayerCosts = std::array<LayerCost, kLayerCalls>;

Result<LayerCosts> timeLayer(bool isQuantized, uint32_t steps);

}  // namespace mnk::bench
