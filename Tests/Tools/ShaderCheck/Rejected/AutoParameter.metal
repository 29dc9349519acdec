// shader-check compile: not allowed in function prototype
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float first(auto p) {
  return p[0];
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = first(o);
}
export_kernel(k)
