// shader-check compile: pack fold expression
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

template <typename... T>
inline float total(T... x) {
  return (x + ...);
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = total(1.0f, 2.0f);
}
export_kernel(k)
