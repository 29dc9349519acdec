// shader-check lint: vertex is a reserved name
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const float vertex = 1.0f;
  o[t] = vertex;
}
export_kernel(k)
