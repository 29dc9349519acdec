// shader-check lint: is recursive
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline uint odd(uint n);
inline uint even(uint n) {
  return n == 0 ? 1 : odd(n - 1);
}
inline uint odd(uint n) {
  return n == 0 ? 0 : even(n - 1);
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(even(t));
}
export_kernel(k)
