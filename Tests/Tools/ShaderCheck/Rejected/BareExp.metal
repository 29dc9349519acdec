// shader-check lint: write precise::exp or fast::exp
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = exp(o[t]);
}
export_kernel(k)
