// shader-check lint: floating literal
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = 0.5 * o[t];
}
export_kernel(k)
