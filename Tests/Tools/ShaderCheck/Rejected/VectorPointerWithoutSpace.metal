// shader-check lint: without an address space
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename T>
inline T first(const vec<T, 4>* p) {
  return p[0].x;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  float4 x = float4(1.0f);
  o[t] = first<float>(&x);
}
export_kernel(k)
