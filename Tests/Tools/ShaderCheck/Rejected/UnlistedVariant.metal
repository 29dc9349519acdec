// shader-check list: no member named 'tan'
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = fast::tan(o[t]);
}
export_kernel(k)
