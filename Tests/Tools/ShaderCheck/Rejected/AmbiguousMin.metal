// shader-check list: min is not on the list for these types
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(min(4, t));
}
export_kernel(k)
