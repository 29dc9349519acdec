// shader-check compile: 'math.h' file not found
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

#include <math.h>

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = 1.0f;
}
export_kernel(k)
