// shader-check list: simdgroup_multiply_accumulate is not on the list for these types
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  simdgroup_float8x8 sums = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  const simdgroup_half8x8 a = make_filled_simdgroup_matrix<half, 8, 8>(1.0h);
  simdgroup_multiply_accumulate(sums, a, sums, sums);
  o[t] = sums.thread_elements()[0];
}
export_kernel(k)
