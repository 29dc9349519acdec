// shader-check compile: a buffer index is 0 to 30
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(31)]]) {
  o[0] = 1.0f;
}
export_kernel(k)
