// Common idioms of Metal kernels.
// host accepts
#include "../../../../Shaders/Common/MetalCompat.h"

struct Tile {
  float4 rows[4];
  half scales[2];
  uint count;
};

struct Shape {
  uint width;
  float factor;
};

enum class Order : uint { ascending, descending };

constexpr uint roundedUp(uint x, uint step) {
  return (x + step - 1) / step * step;
}

template <typename T, uint width, bool isScaled>
inline float rowSum(device const T* row, constant Shape& shape) {
  static_assert(width % 4 == 0, "rows hold whole vectors");
  constexpr uint kVectors = roundedUp(width, 4) / 4;
  float4 sums[kVectors];
  device const vec<T, 4>* vectors = (device const vec<T, 4>*)row;
#pragma unroll
  for (uint i = 0; i < kVectors; ++i) {
    sums[i] = float4(vectors[i]);
  }
  float4 total = sums[0];
  for (uint i = 1; i < kVectors; ++i) {
    total += sums[i] * (isScaled ? shape.factor : 1.0f);
  }
  const float2 halves = total.xy + total.zw;
  return halves.x + halves.y;
}

template <typename T, uint width, bool isScaled>
kernel void sumRows(
    device const T* rows [[buffer(0)]], device T* out [[buffer(1)]], constant Shape& shape [[buffer(2)]],
    const device Tile& first [[buffer(3)]], constant uint* starts [[buffer(4)]], uint row [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup_array(float4, tile, 32);
  threadgroup_array(Tile, tiles, 2);
  tile[lane] = first.rows[lane % 4];
  tile[lane].x += float(first.scales[0]);
  if (lane < 2) {
    tiles[lane] = first;
    tiles[lane].rows[1].y = 2.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const half4 narrow = half4(tile[lane]);
  half product = narrow.x * narrow.y + 1.0h;
  product *= 2.0h;
  const float mixed = product + tile[31 - lane].w;
  device const T* mine = rows + starts[row] * shape.width;
  const long distance = mine - rows;
  thread const float* local = &mixed;
  const Order order = distance > 0 ? Order::descending : Order::ascending;
  const float sum = rowSum<T, width, isScaled>(mine, shape) + local[0] + tiles[1].rows[1].y;
  out[row] = T(order == Order::ascending ? sum : -sum);
}
instantiate_kernel("sumRows_f32", sumRows, float, 64, true)
instantiate_kernel("sumRows_f16", sumRows, half, 128, false)
instantiate_kernel("sumRows_bf16", sumRows, bfloat, 128, true)

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
