// shader-check lint: goto is no word of Metal
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  if (t > 0) {
    goto end;
  }
  o[t] = 1.0f;
end:
  return;
}
export_kernel(k)
