// shader-check list: as_type is not on the list for these types
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = as_type<float>(int(t));
}
export_kernel(k)
