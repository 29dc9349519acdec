// shader-check compile: reinterpret_cast from
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  threadgroup float* p = reinterpret_cast<threadgroup float*>(o);
  p[t] = 1.0f;
}
export_kernel(k)
