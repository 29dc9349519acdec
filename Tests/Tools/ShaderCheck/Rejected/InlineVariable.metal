// shader-check compile: inline variables
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

inline constant float kHalf = 0.5f;

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = kHalf;
}
export_kernel(k)
