// shader-check lint: is recursive
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline uint factorial(uint n) {
  return n == 0 ? 1 : n * factorial(n - 1);
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(factorial(t));
}
export_kernel(k)
