// shader-check lint: call of kernel fill
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void fill(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = 1.0f;
}
export_kernel(fill)

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  fill(o, t);
}
export_kernel(k)
