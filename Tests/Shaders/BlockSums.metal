// Sums of a matrix's columns and of their neighbors: a kernel that needs every kind of barrier. `make proof` removes
// the barriers one by one.
#include "../../Shaders/Common/MetalCompat.h"

// A threadgroup of four simdgroups sums 32 columns, in blocks of 32 rows that it transposes through threadgroup memory.
// sums[c] is the sum of column c; groups[c] is the sum over the four columns with the same c / 4, read back from `sums`
// in reverse order.
kernel void blockSums(
    device const float* matrix [[buffer(0)]], device float* sums [[buffer(1)]], device float* groups [[buffer(2)]],
    constant uint2& size [[buffer(3)]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint threadgroupIndex [[threadgroup_position_in_grid]]) {
  threadgroup_array(float, tile, 32 * 33);
  threadgroup_array(float, totals, 32);
  const uint firstColumn = threadgroupIndex * 32;
  if (lane < 8) {
    totals[simdgroup * 8 + lane] = 0.0f;
  }
  for (uint firstRow = 0; firstRow < size.x; firstRow += 32) {
    for (uint row = simdgroup; row < 32; row += 4) {
      const bool isInside = firstRow + row < size.x && firstColumn + lane < size.y;
      tile[row * 33 + lane] = isInside ? matrix[(firstRow + row) * size.y + firstColumn + lane] : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < 8; ++i) {
      const uint column = simdgroup * 8 + i;
      const float sum = simd_sum(tile[lane * 33 + column]);
      if (lane == i) {
        totals[column] += sum;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (simdgroup == 3) {
    sums[firstColumn + lane] = totals[lane];
  }
  threadgroup_barrier(mem_flags::mem_device);
  if (simdgroup == 0) {
    threadgroup float* exchange = tile;
    exchange[lane] = sums[firstColumn + 31 - lane];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const float pair = exchange[lane] + exchange[lane ^ 1];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    exchange[lane] = pair;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    groups[firstColumn + 31 - lane] = pair + exchange[lane ^ 2];
  }
}
export_kernel(blockSums)
