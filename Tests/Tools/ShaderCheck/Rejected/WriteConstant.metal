// shader-check compile: cannot assign to
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(constant float& c [[buffer(0)]]) {
  c = 1.0f;
}
export_kernel(k)
