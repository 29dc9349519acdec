// shader-check compile: program scope variable must reside in constant address space
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

threadgroup float shared[32];

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  shared[t] = 1.0f;
  o[t] = shared[t];
}
export_kernel(k)
