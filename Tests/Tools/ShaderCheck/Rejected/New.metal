// shader-check compile: is not supported in C++ for OpenCL
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  thread float* p = new float[4];
  o[t] = p[0];
}
export_kernel(k)
