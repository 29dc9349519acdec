// shader-check compile: taking address of function
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float twice(float x) {
  return x + x;
}

template <float F(float)>
inline float applied(float x) {
  return F(x);
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = applied<twice>(1.0f);
}
export_kernel(k)
