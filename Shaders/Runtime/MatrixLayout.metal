// Probes which elements of an 8x8 simdgroup matrix each lane holds, which Metal does not specify. Each element of the
// probed matrix is its own index. Runs as one simdgroup.
#include "../Common/MetalCompat.h"
#include "ProbeTypes.h"

kernel void matrixLayoutProbe(
    device uint* found [[buffer(kMatrixLayoutFound)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, indices, 64);
  indices[lane] = float(lane);
  indices[lane + 32u] = float(lane + 32u);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 matrix;
  simdgroup_load(matrix, indices, 8);
  const uint first = uint(matrix.thread_elements()[0]);
  const uint second = uint(matrix.thread_elements()[1]);
  device uint* mine = found + lane * uint(kMatrixLayoutFindingsPerLane);
  mine[kMatrixLayoutFirst] = first;
  mine[kMatrixLayoutSecondIsNext] = first % 8u != 7u && second == first + 1u ? 1u : 0u;
}
export_kernel(matrixLayoutProbe)
