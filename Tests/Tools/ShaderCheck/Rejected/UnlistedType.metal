// shader-check list: simd_sum is not on the list for these types
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(simd_sum(half(1.0f)));
}
export_kernel(k)
