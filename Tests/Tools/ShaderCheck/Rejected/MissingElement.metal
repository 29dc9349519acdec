// shader-check compile: no member named 'z'
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const float2 v = float2(1.0f);
  o[t] = v.z;
}
export_kernel(k)
