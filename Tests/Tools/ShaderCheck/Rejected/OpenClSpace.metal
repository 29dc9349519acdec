// shader-check compile: global_
// shader-check lint: without an address space
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  global float* p = o;
  p[t] = 1.0f;
}
export_kernel(k)
