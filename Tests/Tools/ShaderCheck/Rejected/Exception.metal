// shader-check compile: cannot use 'throw'
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  if (t > 5) {
    throw 1;
  }
  o[t] = 1.0f;
}
export_kernel(k)
