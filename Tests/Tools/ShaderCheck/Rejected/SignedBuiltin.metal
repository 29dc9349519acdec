// shader-check lint: thread_position_in_grid as int
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], int t [[thread_position_in_grid]]) {
  o[t] = 1.0f;
}
export_kernel(k)
