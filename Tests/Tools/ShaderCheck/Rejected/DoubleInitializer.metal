// shader-check lint: floating literal
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

constant half table[2] = {1.0, 2.0};

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = float(table[t]);
}
export_kernel(k)
