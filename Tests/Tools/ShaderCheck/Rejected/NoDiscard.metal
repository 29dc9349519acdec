// shader-check lint: attribute nodiscard
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

[[nodiscard]] inline float one() {
  return 1.0f;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = one();
}
export_kernel(k)
