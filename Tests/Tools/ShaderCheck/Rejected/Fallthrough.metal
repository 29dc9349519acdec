// shader-check lint: attribute fallthrough
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  switch (t) {
    case 0:
      o[t] = 1.0f;
      [[fallthrough]];
    default:
      o[t] += 1.0f;
  }
}
export_kernel(k)
