// shader-check compile: no viable overloaded
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  float2 v = float2(1.0f);
  v.xx = float2(2.0f);
  o[t] = v.x;
}
export_kernel(k)
