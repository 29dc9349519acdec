// shader-check compile: cannot initialize a variable of type '__private float
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  thread float* p = o;
  p[t] = 1.0f;
}
export_kernel(k)
