// Kernels with one deliberate mistake each. HostFaultTests.cpp expects a typed error that names the line.
#include "../../Shaders/Lib/Words.h"

pipeline_constant(uint, faultMissing, 40);

kernel void faultDivergentSimd(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 16) {
    data[lane] = simd_sum(1.0f);
  } else {
    data[lane] = simd_sum(2.0f);
  }
}
export_kernel(faultDivergentSimd)

kernel void faultReturnBeforeBarrier(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid == 40) {
    return;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[tid] = 1.0f;
}
export_kernel(faultReturnBeforeBarrier)

kernel void faultDifferentBarriers(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  data[tid] = 1.0f;
}
export_kernel(faultDifferentBarriers)

kernel void faultTooMuchMemory(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, large, 8000);
  threadgroup_array(float, small, 200);
  large[tid] = 1.0f;
  small[tid] = 1.0f;
  data[tid] = large[tid] + small[tid];
}
export_kernel(faultTooMuchMemory)

kernel void faultUnsetConstant(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  data[tid] = float(faultMissing);
}
export_kernel(faultUnsetConstant)

kernel void faultUnsetOptional(device float* data [[buffer(0), function_constant(faultMissing)]]) {
  data[0] = 1.0f;
}
export_kernel(faultUnsetOptional)

// Lane 5 leaves its place unwritten: NaN where threadgroup memory is poisoned.
kernel void faultUnwritten(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, scratch, 32);
  if (lane != 5) {
    scratch[lane] = 1.0f;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  data[lane] = scratch[lane];
}
export_kernel(faultUnwritten)

// Overwrites what a slower lane has still to read: right only in lock step, which no device promises.
kernel void faultLockStep(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, scratch, 32);
  float value = float(lane);
  for (uint step = 0; step < 4; ++step) {
    scratch[lane] = value;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    value += scratch[(lane + 1) % 32];
  }
  data[lane] = value;
}
export_kernel(faultLockStep)

kernel void faultMissingBarrier(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  data[tid] = scratch[63 - tid];
}
export_kernel(faultMissingBarrier)

kernel void faultOutOfBounds(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  data[tid + 1] = 1.0f;
}
export_kernel(faultOutOfBounds)
