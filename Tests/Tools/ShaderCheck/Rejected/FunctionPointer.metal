// shader-check compile: pointers to functions are not allowed
// shader-check compile: taking address of function
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float twice(float x) {
  return x + x;
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  float (*f)(float) = twice;
  o[t] = f(1.0f);
}
export_kernel(k)
