// shader-check lint: attribute thread_postion_in_grid
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_postion_in_grid]]) {
  o[t] = 1.0f;
}
export_kernel(k)
