// shader-check lint: asm is no word of Metal
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  asm("nop");
  o[t] = 1.0f;
}
export_kernel(k)
