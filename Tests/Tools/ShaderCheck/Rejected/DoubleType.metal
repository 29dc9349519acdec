// shader-check compile: Metal has no double
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  double x = 1;
  o[t] = float(x);
}
export_kernel(k)
