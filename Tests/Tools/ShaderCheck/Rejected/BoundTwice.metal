// shader-check lint: buffer(0) is bound twice
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], device const float* i [[buffer(0)]]) {
  o[0] = i[0];
}
export_kernel(k)
