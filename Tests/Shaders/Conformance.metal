// Kernels that define the behavior of lanes, memory and arguments in the Metal Shading Language.
// HostConformanceTests.cpp has the expected results.
#include "../../Shaders/Common/MetalCompat.h"

pipeline_constant(bool, testFlag, 0);
pipeline_constant(int, testInt, 1);
pipeline_constant(uint, testUint, 2);
pipeline_constant(float, testFloat, 3);

// Simdgroups and quads: 32 threads, 32 numbers each.

kernel void simdgroupFunctions(
    device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const float x = float(lane) + 1.0f;
  device float* row = out + (simdgroup * 32 + lane) * 32;
  row[0] = simd_sum(x);
  row[1] = simd_max(x);
  row[2] = simd_min(x);
  row[3] = simd_product(lane < 3 ? x : 1.0f);
  row[4] = simd_shuffle(x, ushort(31 - lane));
  row[5] = simd_shuffle_xor(x, 5);
  const float down = simd_shuffle_down(x, 1);
  row[6] = lane < 31 ? down : 0.0f;
  const float up = simd_shuffle_up(x, 1);
  row[7] = lane > 0 ? up : 0.0f;
  row[8] = simd_shuffle_rotate_down(x, 3);
  row[9] = simd_shuffle_rotate_up(x, 3);
  row[10] = simd_broadcast(x, 7);
  row[11] = simd_broadcast_first(x);
  row[12] = simd_prefix_inclusive_sum(x);
  row[13] = simd_prefix_exclusive_sum(x);
  row[14] = float(simd_vote::vote_t(simd_ballot(lane % 2 == 0)) == 0x55555555u);
  row[15] = simd_all(lane < 32) && !simd_all(lane < 31) ? 1.0f : 0.0f;
  row[16] = simd_any(lane == 9) && !simd_any(lane == 99) ? 1.0f : 0.0f;
  row[17] = float(simd_or(1u << lane) == 0xffffffffu);
  row[18] = float(simd_and(lane | 32u));
  row[19] = float(simd_xor(lane == 4 ? 12u : 0u));
  row[20] = quad_sum(x);
  row[21] = quad_max(x);
  row[22] = quad_min(x);
  row[23] = quad_shuffle(x, ushort(3 - lane % 4));
  row[24] = quad_shuffle_xor(x, 1);
  row[25] = quad_broadcast(x, 2);
  row[26] = float(simd_sum(half(1.0f)));
  row[27] = float(simd_max(int(lane) - 16));
  const float4 four = simd_shuffle_xor(float4(x, 2.0f * x, 3.0f * x, 4.0f * x), 1);
  row[28] = four.x + four.w;
  row[29] = float(simd_sum(ushort(lane)));
  row[30] = float(simd_is_first());
  row[31] = float(simd_prefix_exclusive_sum(uint(2)));
}
export_kernel(simdgroupFunctions)

// Lanes beyond the limit have returned; the others still use collectives.
kernel void returnedLanes(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= testUint) {
    return;
  }
  out[lane] = simd_sum(1.0f) + 100.0f * simd_broadcast_first(float(lane));
}
export_kernel(returnedLanes)

// The first lanes return; the first remaining lane broadcasts.
kernel void returnedFirstLanes(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  if (lane < testUint) {
    return;
  }
  out[lane] = simd_sum(1.0f) + 100.0f * simd_broadcast_first(float(lane));
}
export_kernel(returnedFirstLanes)

// Atomics.

// One thread per threadgroup: the order in which they ran.
kernel void takeTickets(
    device atomic_uint* next [[buffer(0)]], device uint* tickets [[buffer(1)]],
    uint group [[threadgroup_position_in_grid]]) {
  tickets[group] = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);
}
export_kernel(takeTickets)

kernel void atomics(
    device atomic_uint* unsigneds [[buffer(0)]], device atomic_int* signeds [[buffer(1)]],
    device atomic_float* floats [[buffer(2)]], device uint* seen [[buffer(3)]], uint i [[thread_position_in_grid]],
    uint local [[thread_index_in_threadgroup]]) {
  threadgroup_array(atomic_uint, tally, 1);
  if (local == 0) {
    atomic_store_explicit(&tally[0], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&tally[0], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local == 0) {
    const uint total = atomic_load_explicit(&tally[0], memory_order_relaxed);
    atomic_fetch_add_explicit(&unsigneds[0], total, memory_order_relaxed);
  }
  atomic_fetch_sub_explicit(&unsigneds[1], 1u, memory_order_relaxed);
  atomic_fetch_max_explicit(&unsigneds[2], i, memory_order_relaxed);
  atomic_fetch_min_explicit(&unsigneds[3], i, memory_order_relaxed);
  atomic_fetch_or_explicit(&unsigneds[4], 1u << (i % 32), memory_order_relaxed);
  atomic_fetch_and_explicit(&unsigneds[5], ~(1u << (i % 4)), memory_order_relaxed);
  atomic_fetch_xor_explicit(&unsigneds[6], i, memory_order_relaxed);
  atomic_fetch_min_explicit(&signeds[0], -int(i), memory_order_relaxed);
  atomic_fetch_max_explicit(&signeds[1], int(i) - 1000, memory_order_relaxed);
  atomic_fetch_add_explicit(&floats[0], 0.5f, memory_order_relaxed);
  // Each thread draws a ticket; no two threads get the same.
  const uint ticket = atomic_fetch_add_explicit(&unsigneds[7], 1u, memory_order_relaxed);
  seen[ticket] = 1u;
  // A product by compare-and-exchange: doubles once for every 32nd thread.
  if (i % 32 == 0) {
    uint expected = atomic_load_explicit(&unsigneds[8], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &unsigneds[8], &expected, expected * 2u, memory_order_relaxed, memory_order_relaxed)) {
    }
  }
  if (i == 5) {
    seen[ticket] += atomic_exchange_explicit(&unsigneds[9], 77u, memory_order_relaxed) - 42u;
  }
}
export_kernel(atomics)

// Memory and constants.

struct ConformanceTable {
  uint entries[12];
};

constant constexpr float kConformanceWeights[4] = {1.0f, 2.0f, 4.0f, 8.0f};

// Correct exchanges of every kind; sanitizers must find nothing here. 64 threads.
kernel void exchanges(
    device uchar* bytes [[buffer(0)]],  // [threadgroups][64]
    device atomic_uint* count [[buffer(1)]],
    device ConformanceTable* tables [[buffer(2)]],  // [threadgroups + 1], the first is the source
    device float* scratchInDevice [[buffer(3)]],    // [threadgroups][64]
    threadgroup uchar* shared [[threadgroup_memory(0)]], threadgroup float* floats [[threadgroup_memory(2)]],
    uint group [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup_array(uint, fixed, 64);
  shared[tid] = uchar(tid);  // neighboring bytes belong to different lanes
  floats[tid] = float(tid);
  fixed[tid] = tid * 2u;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  const uchar neighbour = shared[tid ^ 1];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uchar mirrored = uchar(floats[63 - tid]) + uchar(fixed[63 - tid]);
  if (tid < 16) {
    reinterpret_cast<threadgroup uint*>(shared)[tid] += 1u;  // four bytes at once
  }
  device float* mine = scratchInDevice + group * 64;
  mine[tid] = kConformanceWeights[tid % 4];
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  bytes[group * 64 + tid] = uchar(shared[63 - tid] + neighbour + uchar(mine[63 - tid]) + mirrored);
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  if (tid == 0) {
    tables[group + 1] = tables[0];  // a copy of 48 bytes
  }
}
export_kernel(exchanges)

// A tree reduction over the threadgroup with a barrier in every round of a loop.
kernel void threadgroupTree(
    device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
    threadgroup uint* values [[threadgroup_memory(0)]], uint i [[thread_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  values[tid] = in[i];
  for (uint distance = 512; distance > 0; distance /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < distance && tid + distance < threads) {
      values[tid] += values[tid + distance];
    }
  }
  if (tid == 0) {
    out[group] = values[0];
  }
}
export_kernel(threadgroupTree)

kernel void functionConstants(device float* out [[buffer(0)]]) {
  out[0] = testFlag ? 1.0f : 0.0f;
  out[1] = float(testInt);
  out[2] = float(testUint);
  out[3] = testFloat;
}
export_kernel(functionConstants)

struct ReadParams {
  uint offset;
  uint stride;
};

// Reads through references and pointers into constant memory, also from functions.
inline uint entryAt(constant const uint* table, constant ReadParams& p, uint i) {
  return table[p.offset + i * p.stride];
}

kernel void constantReads(
    constant ReadParams& p [[buffer(0)]], constant const uint* table [[buffer(1)]],
    constant const uint4* wide [[buffer(2)]], device uint* out [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  const uint index = entryAt(table, p, i);
  out[i] = table[index] + wide[i % 2].w;
}
export_kernel(constantReads)

kernel void optionalArguments(
    device float* out [[buffer(0)]], device const float* values [[buffer(2), function_constant(testFlag)]],
    constant float& scale [[buffer(5), function_constant(testFlag)]],
    threadgroup float* scratch [[threadgroup_memory(1)]], uint i [[thread_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]]) {
  scratch[tid] = testFlag ? values[i] * scale : -1.0f;
  out[i] = scratch[tid];
}
export_kernel(optionalArguments)

template <typename T, uint Factor>
kernel void scaled(device const T* in [[buffer(0)]], device T* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = T(in[i] * T(Factor));
}
instantiate_kernel("scaled_float_3", scaled, float, 3)
instantiate_kernel("scaled_int_5", scaled, int, 5)

// Positions: a row of 27 numbers per thread.

kernel void positions(
    device uint* out [[buffer(0)]], uint3 inGrid [[thread_position_in_grid]],
    ushort3 inGroup [[thread_position_in_threadgroup]], uint linear [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]], uint width [[threads_per_simdgroup]],
    uint3 group [[threadgroup_position_in_grid]], uint3 groupSize [[threads_per_threadgroup]],
    uint3 fullSize [[dispatch_threads_per_threadgroup]], uint3 groups [[threadgroups_per_grid]],
    uint3 threads [[threads_per_grid]]) {
  const uint index = (inGrid.z * threads.y + inGrid.y) * threads.x + inGrid.x;
  const uint3 triples[7] = {inGrid, uint3(inGroup), group, groupSize, fullSize, groups, threads};
  const uint counted = testFlag ? simd_sum(1u) : 0u;  // lanes in this simdgroup
  const uint numbers[6] = {linear, lane, simdgroup, simdgroups, width, counted};
  device uint* row = out + index * 27;
  for (uint i = 0; i < 21; ++i) {
    row[i] = triples[i / 3][i % 3];
  }
  for (uint i = 0; i < 6; ++i) {
    row[21 + i] = numbers[i];
  }
}
export_kernel(positions)

kernel void copy16(
    device const uint4* from [[buffer(0)]], device uint4* to [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  to[i] = from[i];
}
export_kernel(copy16)
