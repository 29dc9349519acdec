// shader-check compile: no viable conversion
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const half4 h = half4(1.0h);
  const float4 f = h;
  o[t] = f.x;
}
export_kernel(k)
