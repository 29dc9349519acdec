// shader-check lint: internal name of a compiler
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = __builtin_fabsf(o[t]);
}
export_kernel(k)
