// shader-check compile: converts between mismatching address spaces
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  thread float* p = (thread float*)o;
  p[t] = 1.0f;
}
export_kernel(k)
