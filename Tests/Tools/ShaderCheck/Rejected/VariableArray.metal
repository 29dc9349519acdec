// shader-check compile: array
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  float x[t];
  x[0] = 1.0f;
  o[t] = x[0];
}
export_kernel(k)
