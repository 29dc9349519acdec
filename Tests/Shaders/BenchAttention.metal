// A benchmark kernel: attention of one new token over an f16 cache (head dimension 128), split over the keys, then
// reduced. It is not part of the shipped library.
// One threadgroup serves one key/value head and one split; each of its simdgroups serves one query head.
#include "../../Shaders/Common/MetalCompat.h"

struct BenchAttentionParams {
  uint keys;
  uint capacity;  // rows per head in the cache
  uint splits;    // at most 32
  float scale;
};

pipeline_constant(bool, benchHasWindow, 60);
pipeline_constant(uint, benchWindow, 61);

constant constexpr uint kHeadDim = 128;
constant constexpr uint kTile = 32;  // keys per step: one per lane
constant constexpr uint kMaxQueriesPerHead = 8;

// Sum of a tile's value rows times their weights. Keys past the last have weight zero and repeat the last row; four
// chains hide the latency of fma.
inline float4 weightedSum(device const half4* rows, threadgroup const float* weights, uint last) {
  float4 chains[4] = {float4(0.0f), float4(0.0f), float4(0.0f), float4(0.0f)};
  for (uint i = 0; i < kTile; i += 4) {
    for (uint j = 0; j < 4; ++j) {
      const float4 value = float4(rows[min(i + j, last) * (kHeadDim / 4)]);
      chains[j] = fma(value, float4(weights[i + j]), chains[j]);
    }
  }
  return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

kernel void benchAttention(
    device const float* queries [[buffer(0)]],  // [heads][128]
    device const half* keys [[buffer(1)]],      // [kvHeads][capacity][128]
    device const half* values [[buffer(2)]],
    device float* partial [[buffer(3)]],  // [heads][splits][128], not normalized
    device float2* state [[buffer(4)]],   // [heads][splits]: maximum, sum
    constant BenchAttentionParams& p [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],  // x: key/value head, y: split
    uint queriesPerHead [[simdgroups_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  // Two tiles of weights per simdgroup: writing one while slower lanes still read the other saves a barrier.
  threadgroup_array(float, weightStorage, kMaxQueriesPerHead* kTile * 2);
  threadgroup float* bothTiles = weightStorage + simdgroup * kTile * 2;
  uint side = 0;

  const uint head = group.x * queriesPerHead + simdgroup;
  const uint first = benchHasWindow && p.keys > benchWindow ? p.keys - benchWindow : 0;
  const uint share = ((p.keys - first + p.splits - 1) / p.splits + kTile - 1) / kTile * kTile;
  const uint begin = first + group.y * share;
  const uint end = min(begin + share, p.keys);

  // Scores: four lanes share a key, each taking every fourth half4 of the row.
  const uint quarter = lane & 3;
  const uint slot = lane >> 2;
  const ulong firstElement = ulong(group.x) * p.capacity * kHeadDim;
  device const half4* keyRows = reinterpret_cast<device const half4*>(keys + firstElement);
  device const half4* valueRows = reinterpret_cast<device const half4*>(values + firstElement);
  device const float4* query = reinterpret_cast<device const float4*>(queries + head * kHeadDim);
  float4 q[8];
  for (uint i = 0; i < 8; ++i) {
    q[i] = query[i * 4 + quarter] * p.scale;
  }

  float maximum = -INFINITY;
  float sum = 0.0f;                   // this lane's share
  float4 accumulator = float4(0.0f);  // elements 4 * lane ..< 4 * lane + 4

  for (uint tile = begin; tile < end; tile += kTile) {
    float4 dots = float4(0.0f);
    for (uint round = 0; round < 4; ++round) {
      const uint key = min(tile + round * 8 + slot, end - 1);
      device const half4* row = keyRows + key * (kHeadDim / 4) + quarter;
      float4 products = float4(0.0f);
      for (uint i = 0; i < 8; ++i) {
        products = fma(q[i], float4(row[i * 4]), products);
      }
      dots[round] = (products.x + products.y) + (products.z + products.w);
    }
    dots += simd_shuffle_xor(dots, 1);
    dots += simd_shuffle_xor(dots, 2);

    const uint mine = quarter * 8 + slot;
    const float2 pair = quarter < 2 ? float2(dots.xy) : float2(dots.zw);
    const float dotted = quarter % 2 == 0 ? pair.x : pair.y;
    const float score = tile + mine < end ? dotted : -INFINITY;
    const float previous = maximum;
    maximum = max(maximum, simd_max(score));
    const float shrink = maximum > previous ? fast::exp(previous - maximum) : 1.0f;
    const float weight = fast::exp(score - maximum);
    sum = sum * shrink + weight;
    threadgroup float* weights = bothTiles + side;
    weights[mine] = weight;
    simdgroup_barrier(mem_flags::mem_threadgroup);

    // Values: each lane owns four elements of the output.
    const uint last = min(kTile, end - tile) - 1;
    device const half4* rows = valueRows + tile * (kHeadDim / 4) + lane;
    const float4 added = last == kTile - 1 ? weightedSum(rows, weights, kTile - 1) : weightedSum(rows, weights, last);
    accumulator = accumulator * shrink + added;
    side ^= kTile;
  }

  sum = simd_sum(sum);
  const uint index = head * p.splits + group.y;
  reinterpret_cast<device float4*>(partial + index * kHeadDim)[lane] = accumulator;
  if (lane == 0) {
    state[index] = float2(maximum, sum);
  }
}
export_kernel(benchAttention)

// Merges the splits of one query head: 128 threads, one per output element.
kernel void benchAttentionReduce(
    device const float* partial [[buffer(0)]], device const float2* state [[buffer(1)]],
    device float* output [[buffer(2)]], constant uint& splits [[buffer(3)]],
    threadgroup float* weights [[threadgroup_memory(0)]],  // 32 floats
    uint head [[threadgroup_position_in_grid]], uint element [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  if (simdgroup == 0) {
    float2 mine = float2(-INFINITY, 0.0f);
    if (lane < splits) {
      mine = state[head * splits + lane];
    }
    const float maximum = simd_max(mine.x);
    const float factor = fast::exp(mine.x - maximum);
    weights[lane] = factor / simd_sum(factor * mine.y);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  float result = 0.0f;
  for (uint split = 0; split < splits; ++split) {
    result += weights[split] * partial[(head * splits + split) * kHeadDim + element];
  }
  output[head * kHeadDim + element] = result;
}
export_kernel(benchAttentionReduce)
