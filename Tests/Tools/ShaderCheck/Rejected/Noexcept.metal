// shader-check lint: noexcept is no word of Metal
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float one() noexcept {
  return 1.0f;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = one();
}
export_kernel(k)
