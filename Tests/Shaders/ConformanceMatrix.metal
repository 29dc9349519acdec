// Kernels that define the behavior of simdgroup_matrix. HostConformanceMatrixTests.cpp has the expected results. All
// run with whole simdgroups.
#include "../../Shaders/Common/MetalCompat.h"

// The elements of rows of 11 that a lane holds: two numbers for each thread.
kernel void matrixPlaces(
    device const float* rows [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, rows, 11);
  out[2 * i] = x.thread_elements()[0];
  out[2 * i + 1] = x.thread_elements()[1];
}
export_kernel(matrixPlaces)

// Copies rows of 9 in device memory through rows of 12 in threadgroup memory to rows of 10 in device memory; each lane
// adds 1 to its elements.
template <typename T>
kernel void matrixRoundTrip(
    device const T* from [[buffer(0)]], device T* into [[buffer(1)]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup_array(T, between, 2 * 8 * 12);
  threadgroup T* mine = between + simdgroup * 8 * 12;
  simdgroup_matrix<T, 8, 8> x;
  simdgroup_load(x, from + simdgroup * 8 * 9, 9);
  x.thread_elements()[0] += T(1.0f);
  x.thread_elements()[1] += T(1.0f);
  simdgroup_store(x, mine, 12);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<T, 8, 8> y;
  simdgroup_load(y, mine, 12);
  simdgroup_store(y, into + simdgroup * 8 * 10, 10);
}
instantiate_kernel("matrixRoundTrip_half", matrixRoundTrip, half)
instantiate_kernel("matrixRoundTrip_bfloat", matrixRoundTrip, bfloat)
instantiate_kernel("matrixRoundTrip_float", matrixRoundTrip, float)

// Matrices of 64 numbers, one for each simdgroup: A * B; A * B + C in another matrix; the same in place of C; and A * A
// added twice to 3 in every element.
template <typename T>
kernel void matrixProducts(
    device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device const float* c [[buffer(2)]],
    device float* out [[buffer(3)]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  simdgroup_matrix<T, 8, 8> x;
  simdgroup_matrix<T, 8, 8> y;
  simdgroup_float8x8 z;
  simdgroup_load(x, a + simdgroup * 64, 8);
  simdgroup_load(y, b + simdgroup * 64, 8);
  simdgroup_load(z, c + simdgroup * 64, 8);
  device float* mine = out + simdgroup * 256;
  simdgroup_float8x8 product;
  simdgroup_multiply(product, x, y);
  simdgroup_store(product, mine, 8);
  simdgroup_float8x8 apart;
  simdgroup_multiply_accumulate(apart, x, y, z);
  simdgroup_store(apart, mine + 64, 8);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, mine + 128, 8);
  simdgroup_float8x8 squares = make_filled_simdgroup_matrix<float, 8, 8>(3.0f);
  for (uint i = 0; i < 2; ++i) {
    simdgroup_multiply_accumulate(squares, x, x, squares);
  }
  simdgroup_store(squares, mine + 192, 8);
}
instantiate_kernel("matrixProducts_half", matrixProducts, half)
instantiate_kernel("matrixProducts_bfloat", matrixProducts, bfloat)
instantiate_kernel("matrixProducts_float", matrixProducts, float)

// Seeded faults.

// Lanes from 30 on have returned.
kernel void faultProductOfFewLanes(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= 30) {
    return;
  }
  const simdgroup_float8x8 x = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_float8x8 d;
  simdgroup_multiply(d, x, x);
  data[lane] = d.thread_elements()[0];
}
export_kernel(faultProductOfFewLanes)

// Half of the lanes reach their product on another path.
kernel void faultProductInDivergentCode(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  const simdgroup_float8x8 x = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  simdgroup_float8x8 d;
  if (lane < 16) {
    simdgroup_multiply(d, x, x);
  } else {
    simdgroup_multiply_accumulate(d, x, x, x);
  }
  data[lane] = d.thread_elements()[0];
}
export_kernel(faultProductInDivergentCode)

// Each lane passes the address of another row.
kernel void faultMatrixOfManyAddresses(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, data + lane, 8);
  data[128 + lane] = x.thread_elements()[0];
}
export_kernel(faultMatrixOfManyAddresses)

// The eighth row ends past the buffer.
kernel void faultMatrixPastBuffer(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, data, 9);
  threadgroup_array(float, values, 32);
  values[lane] = x.thread_elements()[0];
}
export_kernel(faultMatrixPastBuffer)

// Lanes read elements that other lanes stored, without a barrier in between.
kernel void faultMatrixWithoutBarrier(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, values, 64);
  simdgroup_store(make_filled_simdgroup_matrix<float, 8, 8>(1.0f), values, 8);
  data[lane] = values[63 - 2 * lane];
}
export_kernel(faultMatrixWithoutBarrier)
