// Valid code that the checks must accept, beside the kernels that ship (`make shaders`).
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

constant constexpr uint kLanes = 32;
constant constexpr float kWeights[4] = {1.0f, 2.0f, 4.0f, 8.0f};

pipeline_constant(bool, hasScale, 0);
pipeline_constant(uint, rounds, 1);

enum Mode { kAdd = 0, kMultiply = 1 };

struct Params {
  uint count;
  uint mode;
  float4 offset;
  float scale;
};

typedef half Stored;
template <typename T>
using Quad = vec<T, 4>;

// A pointer into every address space.
inline float firstOfDevice(device const float* p) {
  return p[0];
}
inline float firstOfThreadgroup(threadgroup const float* p) {
  return p[0];
}
inline float firstOfConstant(constant const float* p) {
  return p[0];
}
inline float firstOfThread(thread const float* p) {
  return p[0];
}

inline void scaleBy(thread float& x, constant Params& p) {
  x = p.mode == kMultiply ? x * p.scale : x + p.scale;
}

template <typename To, typename From>
inline To converted(From x) {
  return To(float(x));
}

inline float treeSum(threadgroup float* values, uint lane) {
  for (uint distance = kLanes / 2; distance > 0; distance /= 2) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < distance) {
      values[lane] += values[lane + distance];
    }
  }
  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  return firstOfThreadgroup(values);
}

template <typename T, uint width>
kernel void reduceRows(
    device const T* rows [[buffer(0)]], device T* sums [[buffer(1)]], constant Params& p [[buffer(2)]],
    device const float* scales [[buffer(3), function_constant(hasScale)]], device atomic_uint* done [[buffer(4)]],
    threadgroup float* shared [[threadgroup_memory(0)]], uint2 group [[threadgroup_position_in_grid]],
    ushort lane [[thread_index_in_simdgroup]], uint3 threads [[threads_per_threadgroup]]) {
  threadgroup_array(float, values, kLanes);
  thread float private4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  device const Quad<T>* quads = reinterpret_cast<device const Quad<T>*>(rows + group.x * width);
  const Quad<T> quad = quads[lane];
  float4 wide = float4(float(quad.x), float(quad.y), float(quad.z), float(quad.w));
  wide.xy += wide.zw * 2.0f;
  wide[3] = -wide.x;
  wide = fma(wide, float4(0.5f), float4(kWeights[1])) + p.offset;
  const bool4 positive = wide > float4(0.0f);
  const half4 narrow = half4(wide);
  const uint4 bits = (uint4(1u, 2u, 4u, 8u) << 2u) | 1u;
  private4[lane % 4] = positive.x ? precise::exp(wide.x) : fast::exp(-wide.x);
  float x = firstOfThread(private4) + firstOfConstant(kWeights) + float(narrow.y) + float(bits.z);
  if (hasScale) {
    x *= firstOfDevice(scales);
  }
  for (uint i = 0; i < rounds; ++i) {
    scaleBy(x, p);
  }
  values[lane] = x;
  shared[lane] = simd_shuffle_xor(x, 1);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float total = treeSum(values, lane) + simd_sum(shared[lane]) + precise::rsqrt(max(x, 1.0f));
  switch (p.mode) {
    case kAdd:
      x = total;
      break;
    default:
      x = as_type<float>(as_type<uint>(total) & 0xffff0000u);
      break;
  }
  while (x > 1.0e30f) {
    x /= 2.0f;
  }
  if (lane == 0) {
    sums[group.y * threads.x + group.x] = converted<T>(x);
    atomic_fetch_add_explicit(done, 1u, memory_order_relaxed);
  }
}
instantiate_kernel("reduceRows_f32_128", reduceRows, float, 128)
instantiate_kernel("reduceRows_f16_64", reduceRows, Stored, 64)

kernel void fill(device float* out [[buffer(0)]], uint local [[thread_position_in_grid]]) {
  const uint global = min(local, 7u);
  out[global] = INFINITY;
}
export_kernel(fill)

constexpr uint roundedUp(uint x, uint step) {
  return (x + step - 1) / step * step;
}

// A default template argument that calls a function, and digit separators.
template <uint width, uint padded = roundedUp(width, 4)>
kernel void pad(device uint* out [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  const uint other = out[t + 1];
  out[t] = (padded & 0b1010'1010u) + (t != out[t] && out[t] == other ? 1000u : 0u);
}
instantiate_kernel("pad_3", pad, 3)

kernel void bfloats(device bfloat* data [[buffer(0)]], device ushort* bits [[buffer(1)]]) {
  const bfloat a = data[0];
  const bfloat b = bfloat(0.5f);
  data[1] = a * b + a;
  data[2] = bfloat(float(a) * 2.0f);
  bits[0] = as_type<ushort>(a);
  const float wide = a;
  data[3] = a < b ? a : b;
  data[4] = bfloat(wide);
}
export_kernel(bfloats)
