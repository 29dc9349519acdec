// shader-check lint: isnan may be folded
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = isnan(o[t]) ? 0.0f : 1.0f;
}
export_kernel(k)
