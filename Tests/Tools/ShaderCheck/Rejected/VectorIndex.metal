// shader-check lint: thread_index_in_simdgroup as uint2
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

kernel void k(device float* o [[buffer(0)]], uint2 t [[thread_index_in_simdgroup]]) {
  o[t.x] = 1.0f;
}
export_kernel(k)
