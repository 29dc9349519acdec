// Operations of kernels on simdgroup matrices.
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

inline simdgroup_half8x8 fragmentOf(half2 pair) {
  simdgroup_half8x8 result;
  result.thread_elements()[0] = pair.x;
  result.thread_elements()[1] = pair.y;
  return result;
}

template <int count>
kernel void products(
    device const half* rows [[buffer(0)]], device float* out [[buffer(1)]], device half* narrow [[buffer(2)]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, between, 64);
  threadgroup_array(half, small, 64);
  simdgroup_half8x8 factors[count][2];
  simdgroup_float8x8 sums[count];
  for (int i = 0; i < count; ++i) {
    sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    factors[i][0] = make_filled_simdgroup_matrix<half, 8, 8>(1.0h);
    simdgroup_load(factors[i][1], rows + i * 8, 8 * count);
  }
  for (int i = 0; i < count; ++i) {
    const simdgroup_half8x8 a = fragmentOf(half2(half(lane), 0.0h));
    simdgroup_multiply_accumulate(sums[i], a, factors[i][1], sums[i]);
    sums[i].thread_elements()[0] *= 0.5f;
    const float second = sums[i].thread_elements()[1];
    factors[i][0].thread_elements()[1] = half(second);
  }
  simdgroup_store(sums[0], between, 8);
  simdgroup_store(factors[0][0], small, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 x;
  simdgroup_float8x8 y;
  simdgroup_load(x, between, 8);
  simdgroup_load(y, out, 8);
  simdgroup_load(factors[0][1], small, 8);
  simdgroup_float8x8 z;
  simdgroup_multiply(z, x, y);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, out, 8);
  simdgroup_store(factors[0][1], narrow, 8);
}
instantiate_kernel("products_2", products, 2)
