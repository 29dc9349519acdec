// shader-check list: undeclared identifier 'nowhere'
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  o[t] = nowhere(1.0f);
}
export_kernel(k)
