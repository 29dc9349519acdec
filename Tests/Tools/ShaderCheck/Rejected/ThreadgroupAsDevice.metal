// shader-check compile: no matching function for call to 'first'
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float first(device const float* p) {
  return p[0];
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  threadgroup_array(float, s, 32);
  s[t] = 1.0f;
  o[t] = first(s);
}
export_kernel(k)
