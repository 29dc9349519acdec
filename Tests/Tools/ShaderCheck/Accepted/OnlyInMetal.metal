// Valid in Metal but unsupported by the Host device: overloads that differ only in the address space, and vectors as
// constants at file scope.
// host refuses
#include "../../../../Shaders/Common/MetalCompat.h"

constant float4 kUnit = float4(1.0f, 0.0f, 0.0f, 0.0f);

inline float first(device const float* p) {
  return p[0];
}
inline float first(threadgroup const float* p) {
  return p[0];
}

kernel void k(device float* o [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  threadgroup_array(float, s, 32);
  s[t] = first(o) + kUnit.x;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = first(s);
}
export_kernel(k)
