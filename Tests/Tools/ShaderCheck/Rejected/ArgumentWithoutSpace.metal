// shader-check lint: without an address space
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline void increment(float& x) {
  x += 1.0f;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  float x = 1.0f;
  increment(x);
  o[t] = x;
}
export_kernel(k)
