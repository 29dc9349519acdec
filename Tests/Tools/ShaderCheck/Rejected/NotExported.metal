// shader-check lint: kernel k is not exported
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]]) {
  o[0] = 1.0f;
}
