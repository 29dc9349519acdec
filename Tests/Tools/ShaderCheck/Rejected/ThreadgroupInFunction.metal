// shader-check lint: threadgroup variable outside a kernel
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float scratch(uint i) {
  threadgroup_array(float, s, 32);
  s[i] = 1.0f;
  return s[i];
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = scratch(t);
}
export_kernel(k)
