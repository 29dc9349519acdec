// shader-check compile: unused label
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
start:
  o[t] = 1.0f;
}
export_kernel(k)
