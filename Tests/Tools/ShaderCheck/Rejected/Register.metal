// shader-check compile: register
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  register float x = 1.0f;
  o[t] = x;
}
export_kernel(k)
