// shader-check lint: x != x may be folded
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const float x = o[t];
  o[t] = x != x ? 1.0f : 2.0f;
}
export_kernel(k)
