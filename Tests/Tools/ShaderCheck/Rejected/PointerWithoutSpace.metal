// shader-check lint: without an address space
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float first(const float* p) {
  return p[0];
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = first(o);
}
export_kernel(k)
