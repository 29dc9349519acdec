// shader-check lint: o[t+1] == o[t+1] may be folded
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  if (!((o[t + 1]) == o[t + 1])) {
    o[t] = 1.0f;
  }
}
export_kernel(k)
