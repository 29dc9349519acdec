// shader-check lint: parameter without an attribute
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o, uint t [[thread_position_in_grid]]) {
  o[t] = 1.0f;
}
export_kernel(k)
