// Kernels with one deliberate mistake each that a sanitizer reports, at the line that says "mistake".
#include "../../Shaders/Lib/Words.h"

kernel void faultReadPastDevice(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  const float next = data[tid + 1];  // mistake
  data[0] = tid == 63 ? next : data[0];
}
export_kernel(faultReadPastDevice)

kernel void faultWritePastDevice(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  data[tid + 1] = float(tid);  // mistake
}
export_kernel(faultWritePastDevice)

kernel void faultReadPastThreadgroup(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[tid] = scratch[tid + 1];  // mistake
}
export_kernel(faultReadPastThreadgroup)

kernel void faultWritePastThreadgroup(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  threadgroup float* places = scratch;
  places[tid + 1] = float(tid);  // mistake
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[tid] = scratch[tid];
}
export_kernel(faultWritePastThreadgroup)

kernel void faultMisaligned(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  if (tid == 0) {
    *reinterpret_cast<device float4*>(data + 1) = float4(1.0f);  // mistake
  }
}
export_kernel(faultMisaligned)

kernel void faultIndexOverflow(device float* data [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  const int stride = 1 << 26;
  const int index = int(tid) * stride;  // mistake
  data[tid] = index < 0 ? 1.0f : 2.0f;
}
export_kernel(faultIndexOverflow)

kernel void faultThreadgroupRace(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  data[tid] = scratch[63 - tid];  // mistake
}
export_kernel(faultThreadgroupRace)

kernel void faultSimdgroupRace(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(float, scratch, 64);
  scratch[tid] = float(tid);
  data[tid] = scratch[tid ^ 1];  // mistake
}
export_kernel(faultSimdgroupRace)

kernel void faultTwoWriters(device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  data[tid / 2] = float(tid);  // mistake
}
export_kernel(faultTwoWriters)

kernel void faultTwoThreadgroups(
    device float* data [[buffer(0)]], uint tid [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  data[tid] = float(group);  // mistake
}
export_kernel(faultTwoThreadgroups)
