// shader-check lint: a buffer is a device or constant pointer
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], float x [[buffer(1)]]) {
  o[0] = x;
}
export_kernel(k)
