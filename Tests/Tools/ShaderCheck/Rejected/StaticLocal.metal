// shader-check lint: static variable in a function
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  static constant float kOne = 1.0f;
  o[t] = kOne;
}
export_kernel(k)
