// shader-check list: simdgroup_load is not on the list for these types
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(
    device const half* rows [[buffer(0)]], device float* o [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, rows, 8);
  o[t] = x.thread_elements()[0];
}
export_kernel(k)
