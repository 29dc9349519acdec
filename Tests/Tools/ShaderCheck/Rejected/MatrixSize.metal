// shader-check compile: a simdgroup_matrix is 8 x 8
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  simdgroup_matrix<float, 4, 4> x;
  o[t] = x.thread_elements()[0];
}
export_kernel(k)
