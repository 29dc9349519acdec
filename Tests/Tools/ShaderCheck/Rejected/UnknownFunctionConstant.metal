// shader-check list: undeclared identifier 'hasMask'
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0), function_constant(hasMask)]]) {
  o[0] = 1.0f;
}
export_kernel(k)
