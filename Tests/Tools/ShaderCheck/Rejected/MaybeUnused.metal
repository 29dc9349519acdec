// shader-check lint: attribute maybe_unused
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  [[maybe_unused]] const float x = 1.0f;
  o[t] = 2.0f;
}
export_kernel(k)
