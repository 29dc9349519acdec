// shader-check compile: program scope variable must reside in constant address space
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

float scale = 1.0f;

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = scale;
}
export_kernel(k)
