// shader-check lint: long long is no type
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const long long x = 1;
  o[t] = float(x);
}
export_kernel(k)
