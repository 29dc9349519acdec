// shader-check compile: cannot assign to
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

constant float table[2] = {1.0f, 2.0f};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  table[t] = 1.0f;
  o[t] = table[0];
}
export_kernel(k)
