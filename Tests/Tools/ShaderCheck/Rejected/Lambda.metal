// shader-check lint: lambda expression
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  auto twice = [](float x) { return x + x; };
  o[t] = twice(1.0f);
}
export_kernel(k)
