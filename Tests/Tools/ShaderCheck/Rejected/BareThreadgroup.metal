// shader-check compile: Write threadgroup_array
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  threadgroup float s[32];
  s[t] = 1.0f;
  o[t] = s[t];
}
export_kernel(k)
