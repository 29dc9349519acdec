// shader-check compile: invalid operands to binary expression
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const half4 h = half4(1.0h) * 0.5f;
  o[t] = float(h.x);
}
export_kernel(k)
