// Kernels with one seeded fault each. HostFaultTests.cpp and HostCheckingTests.cpp expect a typed error that names the
// line, and .ci/sanitize expects a sanitizer's report at the lines marked "fault".
#include "../../Shaders/Common/MetalCompat.h"

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

// Lane 5 does not write its element: NaN if threadgroup memory is poisoned.
kernel void faultUnwritten(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, scratch, 32);
  if (lane != 5) {
    scratch[lane] = 1.0f;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  data[lane] = scratch[lane];
}
export_kernel(faultUnwritten)

// Overwrites an element that a slower lane has yet to read: correct only in lock step, which no device guarantees.
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
  data[tid] = scratch[63 - tid];  // fault
}
export_kernel(faultMissingBarrier)

kernel void faultOutOfBounds(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  data[tid + 1] = 1.0f;  // fault
}
export_kernel(faultOutOfBounds)

kernel void faultReadsPastBuffer(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  if (tid >= 32) {
    data[tid - 32] = data[tid + 1];  // fault
  }
}
export_kernel(faultReadsPastBuffer)

// The largest index that a thread can compute in 32 bits.
kernel void faultFarIndex(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  data[tid - 1u] = 1.0f;
}
export_kernel(faultFarIndex)

kernel void faultReadsPastArray(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, scratch, 32);
  threadgroup_array(float, neighbor, 32);
  scratch[lane] = neighbor[lane] = float(lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const threadgroup float* from = scratch;
  data[lane] = from[lane + 1] + neighbor[lane];  // fault
}
export_kernel(faultReadsPastArray)

kernel void faultWritesPastArray(
    threadgroup float* scratch [[threadgroup_memory(0)]], uint lane [[thread_index_in_simdgroup]]) {
  scratch[lane + 1] = 1.0f;  // fault
}
export_kernel(faultWritesPastArray)

// Two elements past a private array.
kernel void faultPrivateArray(
    device float* data [[buffer(0)]], constant uint& count [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  float own[4];
  for (uint i = 0; i < count; ++i) {
    own[i] = float(i);
  }
  data[lane] = own[lane % 4];
}
export_kernel(faultPrivateArray)

kernel void faultMissingSimdgroupBarrier(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float, scratch, 32);
  scratch[lane] = float(lane);
  data[lane] = scratch[31 - lane] + simd_sum(0.0f);  // fault
}
export_kernel(faultMissingSimdgroupBarrier)

kernel void faultNarrowBarrier(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  data[tid] = scratch[63 - tid];
}
export_kernel(faultNarrowBarrier)

// A barrier that orders no memory, and one that orders the wrong memory.
kernel void faultNoFlags(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  threadgroup_barrier(mem_flags::mem_none);
  data[tid] = scratch[63 - tid];
}
export_kernel(faultNoFlags)

kernel void faultWrongFlags(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  data[tid] = float(tid);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[tid + 64] = data[63 - tid];
}
export_kernel(faultWrongFlags)

kernel void faultTwoWriters(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  data[tid / 2] = float(tid);  // fault
}
export_kernel(faultTwoWriters)

kernel void faultSameValue(device float* data [[buffer(0)]]) {
  data[0] = 1.0f;
}
export_kernel(faultSameValue)

// The last thread of each threadgroup writes the first element of the next.
kernel void faultTwoThreadgroups(
    device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  data[group * 31 + tid] = float(group);  // fault
}
export_kernel(faultTwoThreadgroups)

kernel void faultReadsOtherThreadgroup(
    device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]], uint size [[threads_per_grid]]) {
  data[tid] = 1.0f;
  threadgroup_barrier(mem_flags::mem_device);
  data[size + tid] = data[size - 1 - tid];
}
export_kernel(faultReadsOtherThreadgroup)

kernel void faultMixedAtomic(device atomic_uint* count [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid == 40) {
    *reinterpret_cast<device uint*>(count) = 0;
  } else {
    atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  }
}
export_kernel(faultMixedAtomic)

kernel void faultMisalignedVector(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  device float4* rows = reinterpret_cast<device float4*>(data + 1);
  rows[tid] = float4(1.0f);  // fault
}
export_kernel(faultMisalignedVector)

kernel void faultShuffleFromReturnedLane(device float* data [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane == 7) {
    return;
  }
  data[lane] = simd_shuffle_xor(float(lane), 1);
}
export_kernel(faultShuffleFromReturnedLane)

// With rows of 2^31 elements, row 2 wraps around to row 0, which is in bounds.
kernel void faultIndexOverflow(
    device float* data [[buffer(0)]], constant uint& rowElements [[buffer(1)]], uint row [[thread_position_in_grid]]) {
  data[(row * rowElements + row) % 64] = 1.0f;
}
export_kernel(faultIndexOverflow)

kernel void faultSignedOverflow(
    device float* data [[buffer(0)]], constant int& start [[buffer(1)]], uint tid [[thread_position_in_grid]]) {
  const int index = start + int(tid);  // fault
  data[index & 31] = 1.0f;
}
export_kernel(faultSignedOverflow)

constant float kSigns[2] = {1.0f, -1.0f};

// Correct in every order: a barrier precedes each stage, which reads what other lanes wrote.
kernel void orderedExchanges(
    device float* data [[buffer(0)]], device float* result [[buffer(1)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = data[tid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float other = scratch[63 - tid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  scratch[tid] = other;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  data[tid] = scratch[tid ^ 1];
  threadgroup_barrier(mem_flags::mem_device);
  result[tid] = data[(tid + 32) % 64] * kSigns[tid % 2];
}
export_kernel(orderedExchanges)
