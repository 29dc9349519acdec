// shader-check compile: no matching function for call to 'first'
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline float first(device const float* p) {
  return p[0];
}

kernel void k(device float* o [[buffer(0)]], constant float* c [[buffer(1)]]) {
  o[0] = first(c);
}
export_kernel(k)
