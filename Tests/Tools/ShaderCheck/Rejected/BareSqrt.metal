// shader-check lint: write precise::sqrt or fast::sqrt
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = metal::sqrt(o[t]);
}
export_kernel(k)
